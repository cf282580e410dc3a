"""Settings: the environment over the file over the defaults, with errors that say where."""

from pathlib import Path

import pytest

from sameas.settings import Settings, SettingsError, hide_password, load_settings


def test_without_anything_set_data_lives_in_the_current_folder(tmp_path):
    settings = load_settings({}, folder=tmp_path)
    assert settings == Settings()
    assert settings.store_url == "sqlite:///sameas.db"
    assert settings.cache == Path("cache")


def test_the_store_follows_the_home_folder(tmp_path):
    settings = load_settings({"SAMEAS_HOME": "/srv/sameas"}, folder=tmp_path)
    assert settings.store_url == "sqlite:////srv/sameas/sameas.db"


def test_the_environment_wins_over_the_file(tmp_path):
    (tmp_path / "sameas.toml").write_text('base = "https://a.example/"\nconcurrency = 2\n')
    settings = load_settings({"SAMEAS_CONCURRENCY": "8"}, folder=tmp_path)
    assert (settings.base, settings.concurrency) == ("https://a.example/", 8)
    assert settings.sources == {"base": "file", "concurrency": "environment"}


def test_an_empty_variable_is_not_set(tmp_path):
    assert load_settings({"SAMEAS_STORE": ""}, folder=tmp_path).store_url == "sqlite:///sameas.db"


def test_variables_of_others_are_left_alone(tmp_path):
    assert load_settings({"SAMEAS_TEST_MSSQL_URL": "x", "HOME": "/"}, folder=tmp_path) == Settings()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SAMEAS_CONCURRENCY", "many", "SAMEAS_CONCURRENCY"),
        ("SAMEAS_CONCURRENCY", "0", "from 1 to 1000"),
        ("SAMEAS_MIN_CONFIDENCE", "1.5", "from 0 to 1"),
        ("SAMEAS_EXTRACTOR", "best", "SAMEAS_EXTRACTOR"),
        ("SAMEAS_STORE", "here.db", "must be a URL"),
        ("SAMEAS_DATABASE", "here.db", "must be a URL"),
        ("SAMEAS_STOER", "memory://", "SAMEAS_STORE"),
    ],
)
def test_a_wrong_variable_is_named_with_what_it_may_be(variable, value, said, tmp_path):
    with pytest.raises(SettingsError, match=said) as caught:
        load_settings({variable: value}, folder=tmp_path)
    assert variable in str(caught.value)


def test_a_wrong_file_is_named(tmp_path):
    (tmp_path / "sameas.toml").write_text("concurrency = \n")
    with pytest.raises(SettingsError, match=r"sameas\.toml cannot be read"):
        load_settings({}, folder=tmp_path)


def test_an_unknown_name_in_the_file_is_refused_with_the_known_ones(tmp_path):
    (tmp_path / "sameas.toml").write_text("stoer = 'memory://'\n")
    with pytest.raises(SettingsError, match="'stoer' is not a setting: the settings are home, store"):
        load_settings({}, folder=tmp_path)


def test_a_wrong_value_in_the_file_is_named_with_its_place(tmp_path):
    (tmp_path / "sameas.toml").write_text("concurrency = 'many'\n")
    with pytest.raises(SettingsError, match=r"sameas\.toml, concurrency"):
        load_settings({}, folder=tmp_path)


def test_passwords_are_never_shown():
    settings = Settings(store="redis://user:secret@host/0", database="sqlite:///r.db")
    assert "secret" not in str(settings.shown())
    assert hide_password("redis://:secret@host") == "redis://:***@host"
    with pytest.raises(SettingsError) as caught:
        load_settings({"SAMEAS_BASE": "ok:", "SAMEAS_CONCURRENCY": "postgresql://u:secret@h"}, folder=Path("/nowhere"))
    assert "secret" not in str(caught.value)
