"""Keys and fingerprints: what makes two pieces of work the same."""

import hashlib
import subprocess
import sys
import time
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.identity.canonical import join
from sameas.identity.errors import NotCanonical
from sameas.identity.key import (
    compute_idempotency_key,
    content_key,
    differing_fields,
    fingerprint,
    key_prefix,
    normalize_text,
    record_digest,
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Apple pie \r\nand\t\n", "Apple pie\nand"),
        ("a\r\n\r\nb", "a\n\nb"),
        ("a \t\n \n\n b", "a\n\n\n b"),
        ("a\rb", "a\nb"),
        ("a  b\u00a0\nc", "a  b\u00a0\nc"),
        ("\u00e9 e\u0301", "\u00e9 e\u0301"),
        ("", ""),
    ],
)
def test_only_line_ends_and_the_blanks_around_them_are_normalised(text, normal):
    assert normalize_text(text) == normal


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    assert normalize_text(normalize_text(text)) == normalize_text(text)


def test_a_long_run_of_blanks_costs_no_more_than_its_length():
    began = time.process_time()
    assert normalize_text("a" + " " * 1_000_000 + "b") == "a" + " " * 1_000_000 + "b"
    assert time.process_time() - began < 5


def key(text="Alice works for Acme.", ontology_id="http://example.org/o", ontology_version="sha256:1", **params):
    return compute_idempotency_key(
        text, ontology_id=ontology_id, ontology_version=ontology_version, extraction_params=params
    )


def test_the_key_and_its_components_are_returned():
    made = key(model="m", temperature=0.0)
    assert made.key.startswith("sha256-")
    assert len(made.key) == 7 + 64
    assert str(made) == made.key
    components = made.components
    assert components.text == "Alice works for Acme."
    assert (components.ontology_id, components.ontology_version) == ("http://example.org/o", "sha256:1")
    assert len(components.text_hash) == len(components.extraction_params_hash) == 64


# As the first release printed them.
@pytest.mark.parametrize(
    ("text", "params", "digits"),
    [
        ("Alice works for Acme.", {}, "0d4c0ba7000225a592367524a3d9dd35b0e07cfd11037e4213f559916e55929d"),
        (
            " Alice \r\nworks for Acm\u00e9. ",
            {"model": "m", "temperature": 0.0, "concurrency": 8},
            "dc85752f2abc5c9711cd349941b98b4e05f975b52ab676c826812a0b8fe616b1",
        ),
        (
            "Alice works for Acme.",
            {"limit": Decimal("1.50"), "since": date(2026, 1, 2), "kinds": ("a", "b")},
            "2f6d123aa7df0e36530d01041709f1b6664e32ff4fc125d366673b2b03b0c0d1",
        ),
    ],
)
def test_an_extraction_key_is_what_it_always_was(text, params, digits):
    assert key(text, **params).key == f"sha256-{digits}"


def test_whitespace_noise_and_speed_settings_do_not_change_the_key():
    assert key(" Alice works for Acme. \r\n", concurrency=8).key == key(concurrency=1).key == key().key


@pytest.mark.parametrize(
    "other",
    [
        {"text": "alice works for Acme."},
        {"ontology_id": "http://example.org/p"},
        {"ontology_version": "sha256:2"},
        {"model": "m"},
        {"temperature": 0.5},
    ],
)
def test_anything_that_changes_the_output_changes_the_key(other):
    assert key(**other).key != key().key


def test_a_field_cannot_be_forged_by_its_neighbour():
    assert key("a|b", "c").key != key("a", "b|c").key


def test_an_ontology_without_a_version_is_refused():
    with pytest.raises(ValueError, match="ontology version"):
        key(ontology_version="")


def test_keys_are_equal_in_every_process_whatever_the_hash_seed():
    code = "from sameas.identity.key import content_key; print(content_key({'b': {'d': 1, 'c': [2.5]}, 'a': 'x'}))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert seen == {content_key({"a": "x", "b": {"c": [2.5], "d": 1}}) + "\n"}


@pytest.mark.parametrize("typed", ["sha256-0123abcd", "0123ABCD", " 0123abcdef "])
def test_a_person_may_type_the_start_of_a_key(typed):
    assert key_prefix(typed).startswith("0123abcd")


@pytest.mark.parametrize("typed", ["0123abc", "xyz12345", "", "sha256-", "0" * 65])
def test_too_little_of_a_key_is_refused(typed):
    with pytest.raises(ValueError, match="at least 8"):
        key_prefix(typed)


plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@given(st.tuples(plain, plain, plain), st.tuples(plain, plain, plain))
def test_two_identities_never_share_a_digest(first, second):
    assert (record_digest(*first) == record_digest(*second)) == (first == second)


def test_delimiters_cannot_merge_two_identities():
    assert record_digest("a:b", "c", "k") != record_digest("a", "b:c", "k")
    assert record_digest("1:a", "", "") != record_digest("", "1:a", "")


def test_a_client_cannot_name_a_content_key():
    assert record_digest("t", "s", "sha256-00", "client") != record_digest("t", "s", "sha256-00", "content")


def test_lone_surrogates_in_an_identity_are_refused():
    with pytest.raises(NotCanonical, match="surrogates"):
        record_digest("t", "s", "\ud800")


ORDER = {"id": 1, "total": 10, "note": "x"}


def test_fingerprints_are_equal_for_equal_requests_only():
    assert fingerprint(ORDER) == fingerprint(dict(reversed(ORDER.items())))
    assert fingerprint(ORDER) != fingerprint(ORDER | {"total": 11})
    assert fingerprint([1]) != fingerprint([2])


def test_a_mismatch_names_the_fields_that_differ():
    assert differing_fields(fingerprint(ORDER), fingerprint(ORDER | {"total": 11})) == ["total"]
    assert differing_fields(fingerprint(ORDER), fingerprint({"id": 1, "total": 10, "extra": 0})) == ["extra", "note"]
    assert differing_fields(fingerprint([1]), fingerprint([2])) == []


def test_a_secret_hides_small_values():
    assert fingerprint(ORDER, secret=b"s") != fingerprint(ORDER)
    assert "x" not in fingerprint(ORDER, secret=b"s").partition(" ")[0]


def test_a_table_gets_one_digest_for_all_of_it():
    wide = {f"c{number}": number for number in range(100)}
    assert " " not in fingerprint(wide)
    assert fingerprint(wide) != fingerprint(wide | {"c5": 0})


def test_excluded_fields_do_not_count_in_a_fingerprint():
    assert fingerprint(ORDER | {"sent_at": 1}, exclude_fields={"sent_at"}) == fingerprint(ORDER)


@given(st.tuples(plain, plain, plain), st.sampled_from(["client", "content"]))
def test_a_record_is_found_under_the_digest_of_the_joined_parts(parts, namespace):
    assert record_digest(*parts, namespace) == hashlib.sha256(join(*parts, namespace)).digest()
