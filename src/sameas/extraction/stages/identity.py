"""What names the result of a stage for one chunk: everything that it depends on, and nothing else."""

import hashlib

import msgspec


class StageIdentity(msgspec.Struct, frozen=True):
    """The extractor and the ontology that a run works with, as digests."""

    extractor: str
    ontology: str

    def digest(self, stage: str, *parts: str | bytes) -> str:
        """A digest of the stage, this identity and the parts, each with its length before it."""
        joined = hashlib.sha256()
        for part in (stage, self.extractor, self.ontology, *parts):
            data = part.encode() if isinstance(part, str) else part
            joined.update(len(data).to_bytes(8, "big") + data)
        return joined.hexdigest()
