"""How much one query may take."""

import msgspec


class QueryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one query. `memory_bytes` is of the process that runs it."""

    seconds: float = 10.0
    rows: int = 10_000
    result_bytes: int = 64 * 1024 * 1024
    memory_bytes: int = 2 * 1024 * 1024 * 1024

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= 3_600:
            raise ValueError("seconds must be above 0 and at most 3600")
        if self.rows < 1 or self.result_bytes < 1_024 or self.memory_bytes < 256 * 1024 * 1024:
            raise ValueError("rows must be at least 1, result_bytes 1024, memory_bytes 256 MB")
