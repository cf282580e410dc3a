"""What can go wrong between a client and the service."""

from collections.abc import Mapping
from typing import Any

import msgspec

from sameas.once.errors import SameasError


class ServiceError(SameasError):
    """The service refused a request; `problem` is its problem document, `code` the last part of its type."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.code = str(problem.get("type", "")).rpartition("/")[2].rpartition(":")[2]
        super().__init__(f"{status}: {problem.get('detail') or problem.get('title') or 'no reason was given'}")

    @classmethod
    def of(cls, status: int, body: bytes) -> "ServiceError":
        """The error that an answer stands for; one that is no problem document is quoted."""
        try:
            problem = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            problem = None
        if not isinstance(problem, dict):
            problem = {"title": body[:200].decode("utf-8", "replace")}
        return cls(status, problem)


class ServiceUnreachable(SameasError):
    """The service did not answer, however often it was asked. Whether the last request was done is not known; asking
    again is safe.
    """
