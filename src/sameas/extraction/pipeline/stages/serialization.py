"""Stage 7, serialization: the graph in the formats that were asked for."""

from collections.abc import Sequence

from sameas.extraction.graph.model import Graph
from sameas.extraction.outputs import OutputContext, OutputFormat, SpooledOutputs, write_graph
from sameas.llm.timeouts import StageName


class SerializationStage:
    """Writes a graph; equal graphs give equal bytes."""

    name: StageName = "serialization"

    def __init__(self, context: OutputContext, *, formats: Sequence[OutputFormat]) -> None:
        self._context = context
        self._formats = formats

    def run(self, graph: Graph) -> SpooledOutputs:
        outputs = SpooledOutputs()
        for name in self._formats:
            write_graph(graph, outputs.add(name), to=name, context=self._context)
        return outputs
