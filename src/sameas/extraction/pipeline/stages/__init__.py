"""The seven stages of an extraction."""

from sameas.extraction.pipeline.stages.chunks import ChunkingStage, ScopingStage
from sameas.extraction.pipeline.stages.entities import ChunkMentions, EntityStage
from sameas.extraction.pipeline.stages.grounded import ChunkSupport, GroundingStage
from sameas.extraction.pipeline.stages.relations import ChunkClaims, RelationStage
from sameas.extraction.pipeline.stages.resolving import ResolutionStage
from sameas.extraction.pipeline.stages.serialization import SerializationStage

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
