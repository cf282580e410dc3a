"""Every error has a message for people and a code for programs."""

import pytest

from sameas.cli.errors import CliError, ExitCode, explain, worst
from sameas.extraction.text.inputs import DamagedDocumentError
from sameas.once.errors import InProgress, SameasError, StoreUnavailable
from sameas.ontology.errors import OntologySyntaxError
from sameas.settings import SettingsError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CliError("no"), ExitCode.BAD_INPUT),
        (SettingsError("no"), ExitCode.USAGE),
        (OntologySyntaxError("no"), ExitCode.BAD_INPUT),
        (DamagedDocumentError("no"), ExitCode.BAD_INPUT),
        (StoreUnavailable("no"), ExitCode.UNAVAILABLE),
        (InProgress("no"), ExitCode.UNAVAILABLE),
        (SameasError("no"), ExitCode.FAILED),
        (FileNotFoundError(2, "No such file", "x.txt"), ExitCode.BAD_INPUT),
        (ModuleNotFoundError("no", name="pyoxigraph"), ExitCode.FAILED),
        (ZeroDivisionError("no"), ExitCode.FAILED),
    ],
)
def test_each_kind_of_error_has_its_code(error, code):
    message, got = explain(error)
    assert got == code
    assert message


def test_a_missing_package_names_the_extra():
    assert "Install sameas[ontology]" in explain(ModuleNotFoundError("no", name="pyoxigraph"))[0]


def test_an_unexpected_error_says_how_to_see_more():
    assert "--debug" in explain(ZeroDivisionError("no"))[0]


def test_many_documents_end_with_the_worst_code():
    assert worst([]) is ExitCode.OK
    assert worst([ExitCode.OK, ExitCode.PARTIAL]) is ExitCode.PARTIAL
    assert worst([ExitCode.PARTIAL, ExitCode.BAD_INPUT, ExitCode.OK]) is ExitCode.BAD_INPUT
    assert worst([ExitCode.UNAVAILABLE, ExitCode.FAILED]) is ExitCode.FAILED
