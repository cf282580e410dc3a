"""Pieces have the key of the text they make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.extraction.text.source import SourceText
from sameas.identity.errors import NotCanonical
from sameas.identity.key import compute_idempotency_key, normalize_text

PARAMS = {"base": "urn:x:", "text": "forged", "zeta": 1, "concurrency": 8}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\r\n\t "\\\x00\u2028😀'), max_size=60)


@given(st.lists(TEXTS, max_size=6))
def test_the_key_of_pieces_is_the_key_of_the_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    whole = compute_idempotency_key(text, ontology_id="o", ontology_version="v", extraction_params=PARAMS)
    source = SourceText(iter(pieces), ontology_id="o", ontology_version="v", params=PARAMS)
    try:
        assert source.key.key == whole.key
        assert source.key.components.text_hash == whole.components.text_hash
        assert source.key.components.extraction_params_hash == whole.components.extraction_params_hash
        for _ in range(2):
            assert "".join(source.read()) == normalize_text(text)
    finally:
        source.close()


def test_lone_surrogates_are_refused() -> None:
    for text in ("a\ud800", ["a", "\ud800"]):
        with pytest.raises(NotCanonical):
            SourceText(text, ontology_id="o", ontology_version="v", params={})
