"""Stage 2, property scoping: which classes and properties of the ontology a chunk can be about."""

from sameas.extraction.bus import Bus
from sameas.extraction.chunking import Chunk
from sameas.llm.timeouts import StageName
from sameas.ontology.focus import Focus, Focuser


class ScopingStage:
    """Chooses the focus of each chunk; a small ontology is passed whole."""

    name: StageName = "property_scoping"
    result_type = Focus

    def __init__(self, focuser: Focuser) -> None:
        self._focuser = focuser

    def digest(self, chunk: Chunk) -> str:
        return ""

    async def work(self, chunk: Chunk) -> Focus:
        return self._focuser.focus(chunk.text)

    def nothing(self, _: Chunk) -> Focus:
        return Focus()

    def count(self, result: Focus) -> int:
        return len(result.classes) + len(result.properties)

    def announce(self, result: Focus, chunk: Chunk, bus: Bus) -> None:
        """A focus is not news."""
