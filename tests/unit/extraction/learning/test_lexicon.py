"""Values, head nouns and normal forms are learned from examples, and can be taken without one example."""

from sameas.extraction.learning.candidates import find_candidates
from sameas.extraction.learning.examples import Example, Triple
from sameas.extraction.learning.lexicon import learn_lexicon
from sameas.extraction.learning.tokens import Tokens, tokenize


def _example(text: str, value: str, name: str = "rank") -> Example:
    return Example(text, (Triple("Li Wei", name, value),))


def _values(tokens: Tokens, found: list[tuple[int, int, str | None]]) -> set[str]:
    return {form or tokens.slice(first, last) for first, last, form in found}


def test_a_normal_form_is_learned_from_the_words_that_stand_for_it() -> None:
    lexicon = learn_lexicon(
        [
            _example("Li Wei is a major general of the army.", "Shao Jiang"),
            _example("The major general retired early.", "Shao Jiang"),
            _example("He was an admiral for years.", "admiral"),
        ],
        ["rank"],
    )
    tokens = tokenize("She became a major general in May.")
    spans = find_candidates(tokens, lexicon)
    assert ("major general", "Shao Jiang") in {(tokens.slice(s.first, s.last), s.form) for s in spans}


def test_a_demonym_says_its_country_without_any_example() -> None:
    tokens = tokenize("It is a Japanese film.")
    spans = find_candidates(tokens, learn_lexicon([], []))
    assert ("Japanese", "Japan") in {(tokens.slice(s.first, s.last), s.form) for s in spans}


def test_an_example_does_not_profit_from_its_own_answer() -> None:
    lexicon = learn_lexicon([_example("She sang as a tenor.", "tenor")], ["rank"])
    assert lexicon.knows_value("tenor")
    assert not lexicon.knows_value("tenor", without=0)


def test_a_new_phrase_is_found_by_its_head_noun() -> None:
    lexicon = learn_lexicon([_example("It is a stage play.", "stage play")], ["rank"])
    tokens = tokenize("It is a one-act play.")
    found = {tokens.slice(s.first, s.last) for s in find_candidates(tokens, lexicon)}
    assert "one-act play" in found
