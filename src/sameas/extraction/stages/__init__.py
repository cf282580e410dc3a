"""The seven stages of an extraction."""

from sameas.extraction.stages.chunks import ChunkingStage
from sameas.extraction.stages.entities import ChunkMentions, EntityStage
from sameas.extraction.stages.grounded import ChunkSupport, GroundingStage
from sameas.extraction.stages.relations import ChunkClaims, RelationStage
from sameas.extraction.stages.resolving import ResolutionStage
from sameas.extraction.stages.scoping import ScopingStage
from sameas.extraction.stages.serialization import SerializationStage

__all__ = [
    "ChunkClaims",
    "ChunkMentions",
    "ChunkSupport",
    "ChunkingStage",
    "EntityStage",
    "GroundingStage",
    "RelationStage",
    "ResolutionStage",
    "ScopingStage",
    "SerializationStage",
]
