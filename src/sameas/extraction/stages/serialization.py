"""Stage 7, serialization: the graph in the formats that were asked for."""

from collections.abc import Sequence

from sameas.extraction.graph import KnowledgeGraph
from sameas.extraction.outputs import OutputContext, OutputFormat, render
from sameas.llm.timeouts import StageName


class SerializationStage:
    """Writes a graph; equal graphs give equal bytes."""

    name: StageName = "serialization"

    def __init__(self, context: OutputContext, *, formats: Sequence[OutputFormat]) -> None:
        self._context = context
        self._formats = formats

    def run(self, graph: KnowledgeGraph) -> dict[OutputFormat, bytes]:
        return {name: render(graph, to=name, context=self._context) for name in self._formats}
