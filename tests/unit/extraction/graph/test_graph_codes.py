"""Every reason for which something is refused is explained to those who read `rejected.json`."""

from pathlib import Path
from typing import get_args

import pytest

from sameas.extraction.graph.model import RejectionCode

DOCS = Path(__file__).resolve().parents[4] / "docs" / "lexicon.md"


@pytest.mark.parametrize("code", get_args(RejectionCode))
def test_a_code_is_in_the_tables_of_reasons(code: str) -> None:
    assert f"`{code}`" in DOCS.read_text("utf-8")
