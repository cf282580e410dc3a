"""The list of commands, and what a mistyped word is answered with."""

import subprocess
import sys
from importlib import import_module

import pytest

from sameas.cli.extract_options import build_parser
from sameas.cli.root import COMMANDS

LISTED = """
import sys
from sameas.cli.entry import main
try:
    main(["--help"])
except SystemExit:
    pass
print(*sorted(name for name in sys.modules if name.startswith("sameas.cli.")))
"""


def test_the_list_of_commands_loads_none_of_them():
    said = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=True).stdout
    loaded = said.splitlines()[-1].split()
    assert not {module.partition(":")[0] for module, _ in COMMANDS.values()} & set(loaded)
    assert all(f"  {name} " in said for name in ("extract", *COMMANDS))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_is_there_and_its_line_fits_eighty_columns(name):
    place, line = COMMANDS[name]
    module, _, function = place.partition(":")
    assert any(hasattr(import_module(module), one) for one in ([function] if function else ["app", "command"]))
    assert len(line) <= 68


@pytest.mark.parametrize(
    ("typed", "meant"), [("--ontolgy", "--ontology"), ("--modle=x", "--model"), ("--fromat", "--format")]
)
def test_a_mistyped_option_is_answered_with_the_one_that_was_meant(capsys, typed, meant):
    parser = build_parser()
    with pytest.raises(SystemExit) as ended:
        parser.check_options(["story.txt", typed])
    assert ended.value.code == 2
    assert f"Did you mean {meant}?" in capsys.readouterr().err


def test_what_follows_two_dashes_is_no_option():
    build_parser().check_options(["--ontology", "o.ttl", "--", "--ontolgy"])
