"""The text of an extraction: a string, or pieces that are spooled so that they can be read twice.

Rule: pieces have the key of the text that they make, computed in the memory of one piece. It is
`compute_idempotency_key` as a stream: `text` is the last member of the canonical form.
"""

import codecs
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import IO, Any

from sameas.extraction.text.document import normalized_pieces
from sameas.identity.canonical import canonical_json
from sameas.identity.key import PARAMS_WITHOUT_EFFECT, IdempotencyKey, compute_idempotency_key

_IN_MEMORY = 256 * 1024
_BLOCK = 1 << 18


class SourceText:
    """A text with its key. Close it when the run is over."""

    def __init__(
        self,
        text: str | Iterable[str],
        *,
        ontology_id: str,
        ontology_version: str,
        params: Mapping[str, Any],
    ) -> None:
        self._text = text if isinstance(text, str) else ""
        self._spool: IO[bytes] | None = None
        if isinstance(text, str):
            self.key = compute_idempotency_key(
                text, ontology_id=ontology_id, ontology_version=ontology_version, extraction_params=params
            )
            return
        # It lives as long as this object and vanishes with it.
        self._spool = tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="sameas-text-")  # noqa: SIM115
        try:
            self.key = self._spooled(text, self._spool, ontology_id, ontology_version, params)
        except BaseException:
            self._spool.close()
            raise

    def read(self) -> str | Iterator[str]:
        """The text from its beginning, whole or in pieces."""
        return self._text if self._spool is None else self._pieces(self._spool)

    def close(self) -> None:
        if self._spool is not None:
            self._spool.close()

    def _spooled(
        self,
        text: Iterable[str],
        spool: IO[bytes],
        ontology_id: str,
        ontology_version: str,
        params: Mapping[str, Any],
    ) -> IdempotencyKey:
        empty = compute_idempotency_key(
            "", ontology_id=ontology_id, ontology_version=ontology_version, extraction_params=params
        )
        counted = {name: value for name, value in params.items() if name not in PARAMS_WITHOUT_EFFECT}
        form = canonical_json(
            {"ontology_id": ontology_id, "ontology_version": ontology_version, "params": counted, "text": ""}
        )
        whole, text_hash = hashlib.sha256(form[:-2]), hashlib.sha256()
        for piece in normalized_pieces(text):
            whole.update(canonical_json(piece)[1:-1])
            data = piece.encode()
            text_hash.update(data)
            spool.write(data)
        whole.update(form[-2:])
        # The text itself stays in the spool.
        components = replace(empty.components, text="", text_hash=text_hash.hexdigest())
        return IdempotencyKey(f"sha256-{whole.hexdigest()}", components)

    def _pieces(self, spool: IO[bytes]) -> Iterator[str]:
        spool.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        while block := spool.read(_BLOCK):
            yield decoder.decode(block)
