"""What reaches the disk as a name is a digest, or harmless."""

import pytest

from sameas.extraction.runs.folder import is_key, key_folder, tenant_folder

KEY = "sha256-" + "0123456789abcdef" * 4


@pytest.mark.parametrize("name", ["", "..", "sha256-", KEY.upper(), KEY + "/..", KEY + "\n", KEY[:-1], "x" + KEY])
def test_only_a_key_names_a_run(name: str) -> None:
    assert not is_key(name)
    with pytest.raises(ValueError, match="64 hex digits"):
        key_folder(name)


def test_a_key_is_its_own_folder() -> None:
    assert key_folder(KEY) == KEY


@pytest.mark.parametrize("tenant", ["acme", "0190-abc_d", "a"])
def test_a_harmless_tenant_is_its_own_folder(tenant: str) -> None:
    assert tenant_folder(tenant) == tenant


def test_every_other_tenant_is_named_by_its_digest() -> None:
    made = tenant_folder("../etc")
    odd = ["..", ".", "a/b", "Acme", "ACME", "a\x00", "_", ".quarantine", "x" * 65, KEY, made, "\ud800", "é"]
    names = {tenant_folder(tenant) for tenant in odd}
    assert len(names) == len(odd)
    assert all(name.startswith("tenant-") and len(name) == 71 for name in names)
    assert made not in names
    assert tenant_folder("") == "_"
