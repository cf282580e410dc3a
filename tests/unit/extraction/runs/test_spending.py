"""What a run under way has spent is known after its worker was killed."""

from decimal import Decimal
from pathlib import Path

from sameas.extraction.pipeline.outcome import failure_code
from sameas.extraction.runs.metadata import SPENDING, SpendingFile
from sameas.llm.ledger import UsageRow
from sameas.llm.models import ModelError
from sameas.once.errors import StoreUnavailable


def row(calls: int, stage: str = "entity_extraction") -> UsageRow:
    return UsageRow(stage=stage, model="m", calls=calls, input_tokens=10 * calls, cost=Decimal(calls) / 100)


def test_the_last_word_on_each_stage_counts_before_what_the_metadata_knew(tmp_path: Path) -> None:
    file = SpendingFile(tmp_path)
    for calls in (1, 2, 3):
        file.note(row(calls))
    file.note(row(1, "grounding"))
    known = (row(1), row(7, "relation_extraction"))
    assert SpendingFile(tmp_path).read(known) == (row(3), row(1, "grounding"), row(7, "relation_extraction"))
    file.begin()
    assert len((tmp_path / SPENDING).read_bytes().splitlines()) == 2
    assert SpendingFile(tmp_path).read(known) == (row(3), row(1, "grounding"), row(7, "relation_extraction"))
    file.end()
    assert SpendingFile(tmp_path).read(known) == known


def test_a_torn_line_leaves_the_one_before_it(tmp_path: Path) -> None:
    file = SpendingFile(tmp_path)
    file.note(row(2))
    file.close()
    with (tmp_path / SPENDING).open("ab") as lines:
        lines.write(b'{"stage":"entity_extr')
    assert SpendingFile(tmp_path).read(()) == (row(2),)


def test_a_torn_line_does_not_spoil_the_next(tmp_path: Path) -> None:
    file = SpendingFile(tmp_path)
    file.note(row(2))
    with (tmp_path / SPENDING).open("ab") as lines:
        lines.write(b'{"stage":"entity_extr')
    file.note(row(3))
    assert SpendingFile(tmp_path).read(()) == (row(3),)


def test_a_run_that_spends_nothing_leaves_no_file(tmp_path: Path) -> None:
    SpendingFile(tmp_path).begin()
    assert list(tmp_path.iterdir()) == []


def test_a_failure_has_a_code_that_is_no_name_of_a_class() -> None:
    assert failure_code(ModelError("no", code="auth")) == "auth"
    assert failure_code(StoreUnavailable("gone")) == "store_error"
    assert failure_code(ValueError("wrong")) == "validation_error"
    assert failure_code(RuntimeError("a bug")) == "internal_error"
