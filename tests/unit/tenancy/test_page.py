"""What docs/tenancy.md shows of credentials is what happens: its commands are typed, its program lets the key in."""

import asyncio
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sameas.cli.root import build_app
from sameas.identity.normalize import Credentials
from sameas.tenancy import Unauthorized

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tenancy.md"
BLOCKS = PAGE.read_text().split("```")[1::2]
(PROGRAM,) = (block.removeprefix("python") for block in BLOCKS if "authenticator = " in block)
(SESSION,) = (block for block in BLOCKS if "$ sameas tenants" in block)


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Types a command of the page; what the page says it prints stands for what it printed."""
    monkeypatch.chdir(tmp_path)
    app = build_app(["tenants"])
    printed = {}

    def run(command, shown):
        words = shlex.split(command)
        if words[0] == "export":
            monkeypatch.setenv(words[1].partition("=")[0], "the content of that file")
            return None
        assert words[0] == "sameas"
        result = CliRunner().invoke(app, [printed.get(word, word) for word in words[1:]], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        said = result.stdout.strip()
        printed[shown] = said
        if said.startswith("sameas_"):
            printed[shown.split("_")[1]] = said.split("_")[1]
        return said

    return run


def test_the_key_of_the_page_is_let_in_by_the_program_of_the_page_until_it_is_revoked(typed):
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)?)", SESSION, re.MULTILINE)
    assert len(steps) == 5
    said = [typed(command, shown.strip()) for command, shown in steps[:-1]]
    _, tenant, user, token = said
    place = {}
    exec(compile(PROGRAM, "docs/tenancy.md", "exec"), place)
    try:
        principal = asyncio.run(place["authenticator"].authenticate(Credentials("apikey", token)))
        assert (principal.tenant_id, principal.user_id) == (tenant, user)
        typed(steps[-1][0], "")
        with pytest.raises(Unauthorized):
            asyncio.run(place["authenticator"].authenticate(Credentials("apikey", token)))
    finally:
        place["database"].close()
