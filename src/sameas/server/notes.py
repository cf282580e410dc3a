"""What is noted of a request while it is answered, for the log line and the metrics at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sameas.server.door import Visitor


class Note(msgspec.Struct):
    """Filled in by whoever knows."""

    route: str = ""
    visitor: Visitor | None = None
    key: str = ""
    hit: bool | None = None
    status: int = 0
    about: Mapping[str, Any] = {}
