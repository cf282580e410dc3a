"""Objects: bytes under names that every machine sees, in a folder, in S3, GCS, Azure or whatever is compatible.

Rule: an object is there whole or not at all, and nothing here needs a conditional write: whoever must not meet another
takes a name of its own. What cannot be reached is `ObjectsUnavailable`, after a bounded time; what is missing is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sameas.once.errors import StoreMisconfigured, StoreUnavailable

_TRIED_FOR = timedelta(seconds=15)
_TRIES = 6
_ANSWERS_WITHIN = "10s"
_PAGE = 500
SCHEMES = ("file", "s3", "s3a", "gs", "az", "abfs", "abfss", "azure", "memory")


class ObjectsUnavailable(StoreUnavailable):
    """The store of objects did not answer, or refused."""


class Listed(NamedTuple):
    """An object that is there."""

    name: str
    size: int
    modified_at: datetime


class Objects:
    """One place for objects. Blocking; any thread may ask."""

    def __init__(self, store: Any) -> None:
        # A store of obstore.
        self._store = store

    def put(self, name: str, data: bytes) -> None:
        """Write an object, or write over it; on return it is kept."""
        with _translated():
            _obstore().put(self._store, name, data)

    def get(self, name: str) -> bytes | None:
        """An object's bytes; None if it is not there."""
        with _translated():
            try:
                return bytes(_obstore().get(self._store, name).bytes())
            except FileNotFoundError:
                return None

    def has(self, name: str) -> bool:
        with _translated():
            try:
                _obstore().head(self._store, name)
            except FileNotFoundError:
                return False
            return True

    def list(self, prefix: str) -> Iterator[Listed]:
        """The objects below a folder-like prefix, in the order of their names as the store has it."""
        with _translated():
            for page in _obstore().list(self._store, prefix=prefix, chunk_size=_PAGE):
                for one in page:
                    yield Listed(one["path"], one["size"], one["last_modified"])

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; those that are not there are no error."""
        with _translated():
            for name in names:
                try:
                    _obstore().delete(self._store, name)
                except FileNotFoundError:
                    continue


def open_objects(url: str) -> Objects:
    """The objects at a URL: `file:///folder`, `s3://bucket/prefix`, `gs://...`, `az://...`; credentials come from where
    the provider's own tools take them (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, ...).
    """
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        raise StoreMisconfigured(
            f"{scheme!r} is no store of objects: use file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://"
        )
    from obstore.exceptions import BaseError

    retry = {"max_retries": _TRIES, "retry_timeout": _TRIED_FOR}
    # Plain HTTP is spoken to an endpoint whose own address says so, and to no other.
    client = {"timeout": _ANSWERS_WITHIN, "allow_http": True}
    try:
        if scheme == "file":
            return Objects(_obstore().store.from_url(url, mkdir=True))
        return Objects(_obstore().store.from_url(url, client_options=client, retry_config=retry))
    except (BaseError, OSError, ValueError, TypeError) as error:
        raise StoreMisconfigured(f"the store of objects cannot be opened: {_first_line(error)}") from error


def _obstore() -> Any:
    try:
        import obstore
        import obstore.store
    except ModuleNotFoundError as error:
        raise StoreMisconfigured("a store of objects needs another package: pip install 'sameas[objects]'") from error
    return obstore


@contextmanager
def _translated() -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError:
        raise
    except (BaseError, OSError) as error:
        raise ObjectsUnavailable(f"the store of objects did not answer: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """What an error of the store says, without its inside."""
    return str(error).partition("\n")[0][:300]
