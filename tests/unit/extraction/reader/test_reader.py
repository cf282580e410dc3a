"""The reader on numpy says what PyTorch said; `python -m training.fixture` wrote the tiny network."""

from pathlib import Path

import numpy as np
import pytest

from sameas.extraction.extractors.reader.decoding import find_mentions, group_names, value_of
from sameas.extraction.extractors.reader.network import Network
from sameas.extraction.extractors.reader.packing import pack, unpack
from sameas.extraction.extractors.reader.reading import Reader
from sameas.extraction.extractors.reader.tokenizer import Tokenizer
from sameas.extraction.extractors.reader.weights import ReaderFilesError, load_embeddings, load_tokenizer, load_weights

TINY = Path(__file__).parent / "tiny"
LABELS = ("company | based in | place", "company | is listed | boolean", "type: place")
TEXT = "Acme Ltd of Ülm is based in Austin."
SPANS = ((0, 7), (12, 15), (29, 34))


def encoded(tokenizer: Tokenizer, text: str) -> np.ndarray:
    return np.array(tokenizer.encode(text).ids)


def test_numpy_reads_what_pytorch_read():
    weights = load_weights(TINY)
    embeddings, tokenizer, network = load_embeddings(TINY, weights.settings), load_tokenizer(TINY), Network(weights)
    with np.load(TINY / "expected.npz") as expected:
        labels = network.join_labels([network.encode_label(embeddings(encoded(tokenizer, label))) for label in LABELS])
        text = network.encode_text(embeddings(encoded(tokenizer, TEXT)), labels)
        first, last = (np.array(column) for column in zip(*SPANS, strict=True))
        vectors = network.span_vectors(text.hidden, first, last)
        np.testing.assert_allclose(text.hidden, expected["hidden"], atol=2e-3)
        np.testing.assert_allclose(text.tags, expected["tags"], atol=1e-3)
        np.testing.assert_allclose(text.stance, expected["stance"], atol=1e-3)
        scores = network.score_pairs(vectors, first, labels.queries[:2], labels.biases[:2])
        np.testing.assert_allclose(scores, expected["scores"], atol=5e-3)
        kinds = network.score_types(vectors, labels.queries[2:], labels.biases[2:])
        np.testing.assert_allclose(kinds, expected["kinds"], atol=5e-3)


def test_labels_are_encoded_each_alone_so_that_their_order_changes_nothing():
    weights = load_weights(TINY)
    embeddings, tokenizer, network = load_embeddings(TINY, weights.settings), load_tokenizer(TINY), Network(weights)
    each = [network.encode_label(embeddings(encoded(tokenizer, label))) for label in LABELS]
    vectors = embeddings(encoded(tokenizer, TEXT))
    one, other = (network.encode_text(vectors, network.join_labels(some)).tags for some in (each, each[::-1]))
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_truth_values_are_read_for_boolean_properties_alone():
    reading = Reader(TINY).read(TEXT, properties=LABELS[:2], booleans=(False, True), classes=LABELS[2:], keep_from=0.0)
    assert reading.mentions
    assert all((fact.object is None) == (fact.property == 1) == (fact.truth is not None) for fact in reading.facts)
    assert {fact.truth for fact in reading.facts if fact.property == 1} == {True, False}
    assert all(abs(sum(fact.stance) - 1) < 1e-4 for fact in reading.facts)


def test_an_empty_text_and_an_empty_ontology_have_no_facts():
    reader = Reader(TINY)
    assert reader.read("", properties=LABELS[:1], booleans=(False,), classes=()).mentions == ()
    assert reader.read(TEXT, properties=(), booleans=(), classes=()).facts == ()


def test_a_folder_without_weights_is_refused_by_name(tmp_path):
    with pytest.raises(ReaderFilesError, match="not the folder of a reader"):
        load_weights(tmp_path)


@pytest.mark.parametrize("bits", [4, 5, 6])
def test_packing_keeps_each_number_within_half_a_step(bits):
    matrix = np.random.default_rng(1).normal(0, 1, (6, 64)).astype(np.float32)
    step = np.ptp(matrix.reshape(6, 2, 32), axis=-1) / (2**bits - 1)
    error = np.abs(unpack(pack(matrix, bits)) - matrix).reshape(6, 2, 32).max(-1)
    assert (error <= 0.51 * step + 2e-3).all()


def test_packing_what_was_unpacked_changes_nothing():
    once = unpack(pack(np.random.default_rng(1).normal(0, 1, (6, 64)), 6))
    np.testing.assert_allclose(unpack(pack(once, 6)), once, atol=2e-3)


def test_tokens_know_their_characters_also_in_other_scripts():
    tokenizer = load_tokenizer(TINY)
    tokens = tokenizer.encode("Ülm 42")
    said = ["Ülm 42"[start:end] for start, end in zip(tokens.starts, tokens.ends, strict=True)]
    assert said == ["Ü", "Ü", "l", "m", " ", "4", "2"]


def test_merges_are_applied_by_rank_and_the_blank_belongs_to_the_word():
    vocabulary = [*load_tokenizer(TINY)._ids, "ab", "Ġab"]
    tokens = Tokenizer(vocabulary, ["a b", "Ġ ab"]).encode("ab ab")
    assert (tokens.ids, tokens.starts, tokens.ends) == ([256, 257], [0, 3], [2, 5])


def test_mentions_end_with_their_word_and_spellings_share_a_name():
    text = "Acme bought Acmes."
    starts, ends = [0, 5, 12, 16, 17], [4, 11, 16, 17, 18]
    tags = np.array([[0, 1, 0], [1, 0, 0], [0, 1, 0], [0.9, 0, 0.1], [1, 0, 0]])
    spans = find_mentions(tags, starts, ends, text)
    assert [(span.start, span.end) for span in spans] == [(0, 4), (12, 17)]
    assert group_names(spans, text) == ([0, 1], ["Acme", "Acmes"])


def test_values_take_the_form_of_the_datatype():
    values = [(0, 11, "1994-05-12", "date"), (20, 22, "12", "number")]
    assert value_of((0, 11), values, "date") == "1994-05-12"
    assert value_of((0, 11), values, "gYear") == "1994"
    assert value_of((0, 11), values, "integer") is None
    assert value_of((20, 25), values, "decimal") == "12"
    assert value_of((20, 25), values, "date") is None
    assert value_of((30, 35), values, "decimal") is None
