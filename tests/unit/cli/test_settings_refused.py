"""Every setting with values that can never work: the commands refuse them at once, and say what was found and wanted."""

import re

import pytest

from sameas.cli.entry import main
from sameas.settings import NAMES, Settings, load_settings

LONG = "x" * 300
# For each setting values that are refused, and a word of what is wanted.
WRONG = {
    "home": [("~nobody-of-this-name/x", "the path of a folder")],
    "store": [
        ("here.db", "a URL"),
        ("http://localhost", "a URL"),
        ("redis://", "a URL"),
        ("redis://localhost:port/0", "a URL"),
        ("redis://localhost:99999/0", "a URL"),
        ("postgresql+psycopg://ho st/db", "a URL"),
    ],
    "database": [("here.db", "a URL"), ("redis://localhost", "a URL"), ("mysql+pymysql://localhost/x", "a URL")],
    "objects": [("bucket", "s3://"), ("https://bucket", "s3://"), ("s3://", "s3://")],
    "broker": [("rabbit", "amqp://"), ("http://localhost", "amqp://"), ("amqp://localhost:0", "amqp://")],
    "events": [("localhost", "redis://"), ("amqp://localhost", "redis://")],
    "tenant": [(LONG, "255"), ("a\nb", "one line")],
    "base": [("people", "IRIs"), ("https://example.org/a b", "IRIs"), ("<urn:x:>", "IRIs")],
    "concurrency": [("0", "from 1 to 1000"), ("1001", "1000"), ("many", "a whole number"), ("1.5", "a whole number")],
    "extractor": [("best", "reader or lexicon"), ("Reader", "lexicon")],
    "min_confidence": [
        ("1.5", "from 0 to 1"),
        ("-0.1", "from 0 to 1"),
        ("nan", "from 0 to 1"),
        ("high", "from 0 to 1"),
    ],
    "prices": [("a\x01b", "one line")],
    "host": [("http://localhost", "listen"), ("local host", "listen")],
    "port": [
        ("-1", "65535"),
        ("65536", "65535"),
        ("http", "a whole number"),
        ("tcp://10.0.0.1:8080", "a whole number"),
    ],
    "metrics_port": [("-1", "65535"), ("65536", "65535")],
    "worker_name": [("a b", "blanks"), ("a@b", "blanks")],
    "auth": [
        ("password", "api-key"),
        ("single-tenant,jwt", "api-key"),
        ("jwt,jwt", "api-key"),
        ("jwt, api-key", "api-key"),
    ],
    "allow_remote": [("maybe", "true or false"), ("2", "true or false")],
    "jwt_issuer": [("a\tb", "one line")],
    "jwt_audience": [("a\tb", "one line")],
    "jwt_keys": [("http://example.org/keys", "https://"), ("ftp://example.org/keys", "https://")],
    "cors_origins": [
        ("example.org", "origins"),
        ("https://example.org/app", "origins"),
        ("https://a.org b.org", "origins"),
    ],
    "lease": [("0", "3600"), ("nan", "3600"), ("inf", "3600"), ("3601", "3600"), ("30s", "3600")],
    "grace": [("-1", "3600"), ("nan", "3600"), ("soon", "3600")],
    "max_body": [("1023", "1024"), ("16MB", "a whole number"), ("-5", "1024")],
    "max_bodies": [("0", "1024"), ("1 GB", "a whole number")],
    "max_requests": [("0", "from 1"), ("-1", "from 1")],
    "max_runs": [("0", "from 1"), ("9" * 400, "from 1")],
    "chunks_per_task": [("-1", "0 divides no run")],
    "max_streams": [("0", "from 1")],
    "models": [
        ("gpt-5", "addresses of models"),
        ("openai:", "addresses of models"),
        ("http://localhost:8000/v1", "addresses of models"),
        ("http://user:pw@localhost/v1#m", "addresses of models"),
        ("openai:gpt-5-mini,openai:gpt-5-mini", "twice"),
    ],
    "model_requests_per_minute": [("0", "from 1"), ("-1", "from 1")],
    "model_tokens_per_minute": [("0", "from 1"), ("lots", "a whole number")],
    "model_concurrency": [("0", "from 1")],
    "request_tokens": [("0", "from 1"), ("-1", "from 1")],
    "request_cost": [("-1", "US dollars"), ("nan", "US dollars"), ("inf", "US dollars"), ("10$", "US dollars")],
    "tenant_tokens_per_day": [("0", "from 1")],
    "tenant_cost_per_day": [("-0.01", "US dollars"), ("nan", "US dollars"), ("much", "US dollars")],
    "stage_timeouts": [
        ("entity_extraction=9/3", "SOFT/HARD"),
        ("chnking=1/2", "the stages are"),
        ("grounding=1/2,grounding=3/4", "each stage once"),
        ("grounding", "SOFT/HARD"),
        (",", "SOFT/HARD"),
    ],
    "deadline": [("-1", "seconds"), ("nan", "seconds"), ("inf", "seconds"), ("1h", "seconds")],
    "result_ttl": [("0", "seconds"), ("nan", "seconds"), ("7d", "seconds"), ("1e300", "seconds")],
    "key_ttl": [("0", "seconds"), ("-1", "seconds"), ("nan", "seconds")],
    "query_seconds": [("0", "3600"), ("nan", "3600"), ("4000", "3600")],
    "query_rows": [("0", "from 1"), ("all", "a whole number")],
    "mode": [("enforced", "enforce, shadow or off"), ("shadow:101%", "enforce"), ("off, enforce", "enforce")],
    "archive": [("a\x00b", "one line"), ("a\nb", "one line")],
}
CASES = [(name, value, said) for name, values in WRONG.items() for value, said in values]
# Of those a file can hold, and an environment cannot: other types.
IN_FILES = [
    ("port", "[80]"),
    ("port", "true"),
    ("host", "1"),
    ("allow_remote", "'yes'"),
    ("lease", "{seconds = 3}"),
    ("models", "['openai:gpt-5']"),
    ("home", "7"),
    ("max_runs", "1.5"),
    ("deadline", "2026-01-01"),
    ("mode", "false"),
]
TOGETHER = [
    ({"MAX_BODY": "2000000", "MAX_BODIES": "1000000"}, "max_bodies must be at least max_body"),
    ({"KEY_TTL": "20", "LEASE": "30"}, "must not be shorter than lease"),
    ({"RESULT_TTL": "20", "LEASE": "30"}, "must not be shorter than lease"),
    ({"ARCHIVE": "old.jsonl", "STORE": "redis://localhost"}, "archive needs a store"),
    ({"BROKER": "amqp://localhost//"}, "broker needs objects"),
    ({"BROKER": "amqp://localhost//", "OBJECTS": "s3://b/p"}, "broker needs a store"),
    ({"BROKER": "amqp://localhost//", "OBJECTS": "s3://b/p", "STORE": "redis://localhost"}, "broker needs a database"),
]


@pytest.fixture(autouse=True)
def nothing_is_opened(monkeypatch):
    """A value that is taken shows itself by what comes next, and starts no server."""

    def taken(settings, **_):
        raise AssertionError("these settings were taken")

    monkeypatch.setattr("sameas.server.serving.serve", taken)
    monkeypatch.setattr("sameas.server.worker.work", taken)
    monkeypatch.setattr("sameas.cli.doctor._checks", taken)


def refused(command, monkeypatch, capsys, folder, **given):
    """What a command says to settings that it refuses."""
    monkeypatch.chdir(folder)
    for name, value in given.items():
        monkeypatch.setenv(f"SAMEAS_{name}", value)
    with pytest.raises(SystemExit) as ended:
        main([command])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, ""), said
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    return said.err


@pytest.mark.parametrize("command", ["serve", "doctor", "worker"])
@pytest.mark.parametrize(("name", "value", "said"), CASES, ids=[f"{name}={value[:20]!r}" for name, value, _ in CASES])
def test_a_wrong_value_is_refused_with_its_name_what_was_found_and_what_is_wanted(
    command, name, value, said, monkeypatch, capsys, tmp_path
):
    if "\0" in value:
        (tmp_path / "sameas.toml").write_text(f'{name} = "{value!r}"'.replace("'", "").replace("\\x00", "\\u0000"))
        error = refused(command, monkeypatch, capsys, tmp_path)
        assert f"sameas.toml, {name}: {name} must be" in error
    else:
        error = refused(command, monkeypatch, capsys, tmp_path, **{name.upper(): value})
        assert f"SAMEAS_{name.upper()}: {name} must be" in error
        assert "pw" in value or repr(value[:20])[1:-1] in error
    assert said in error


@pytest.mark.parametrize(("name", "value"), IN_FILES)
def test_a_value_of_another_type_in_the_file_is_refused(name, value, monkeypatch, capsys, tmp_path):
    (tmp_path / "sameas.toml").write_text(f"{name} = {value}\n")
    error = refused("serve", monkeypatch, capsys, tmp_path)
    assert re.search(rf"sameas\.toml, {name}: {name} must be .+; it is ['\"]", error), error


@pytest.mark.parametrize(("given", "said"), TOGETHER)
def test_settings_that_contradict_each_other_are_refused(given, said, monkeypatch, capsys, tmp_path):
    error = refused("serve", monkeypatch, capsys, tmp_path, **given)
    assert "the settings do not fit together" in error
    assert said in error
    assert any(f"SAMEAS_{name} is {value!r}" in error for name, value in given.items())


@pytest.mark.parametrize("content", [b"port = \n", b"\xff\xfe", b"port = 1\nport = 2\n"])
def test_a_file_that_cannot_be_read_is_refused(content, monkeypatch, capsys, tmp_path):
    (tmp_path / "sameas.toml").write_bytes(content)
    assert "sameas.toml cannot be read" in refused("serve", monkeypatch, capsys, tmp_path)


def test_a_folder_in_place_of_the_file_is_refused(monkeypatch, capsys, tmp_path):
    (tmp_path / "sameas.toml").mkdir()
    assert "sameas.toml cannot be read" in refused("serve", monkeypatch, capsys, tmp_path)


def test_names_that_nobody_knows_are_refused(monkeypatch, capsys, tmp_path):
    (tmp_path / "sameas.toml").write_text("[serve]\nport = 1\n")
    assert "'serve' is not a setting" in refused("serve", monkeypatch, capsys, tmp_path)
    (tmp_path / "sameas.toml").unlink()
    assert "SAMEAS_PROT is not a setting" in refused("serve", monkeypatch, capsys, tmp_path, PROT="80")


def test_every_setting_is_tried():
    assert set(NAMES) == set(WRONG)


def test_limits_that_fit_together_are_taken_though_one_alone_is_above_the_default_of_the_other(tmp_path):
    given = {"SAMEAS_MAX_BODY": str(1 << 30), "SAMEAS_MAX_BODIES": str(1 << 32)}
    assert load_settings(given, folder=tmp_path).max_body == 1 << 30


def test_the_defaults_are_all_right():
    assert load_settings({}, folder=None) is not None
    assert Settings().timeouts() == {}
