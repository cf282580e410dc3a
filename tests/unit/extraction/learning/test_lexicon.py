"""Values, head nouns and normal forms are learned from examples, and can be taken without one example."""

from sameas.extraction.extractors.learning.candidates import find_candidates
from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.learning.lexicon import learn_lexicon
from sameas.extraction.extractors.learning.tokens import Tokens, tokenize


def _example(text: str, value: str, name: str = "rank") -> Example:
    return Example(text, (Triple("Li Wei", name, value),))


def _values(tokens: Tokens, found: list[tuple[int, int, str | None]]) -> set[str]:
    return {form or tokens.slice(first, last) for first, last, form in found}


def test_a_normal_form_is_learned_from_the_words_that_stand_for_it() -> None:
    lexicon = learn_lexicon(
        [
            _example("Li Wei is a major general of the army.", "Shao Jiang"),
            _example("The major general retired early.", "Shao Jiang"),
            _example("There came a major general with his men.", "Shao Jiang"),
            _example("He was an admiral for years.", "admiral"),
        ],
        ["rank"],
    )
    tokens = tokenize("She became a major general in May.")
    spans = find_candidates(tokens, lexicon)
    assert ("major general", "Shao Jiang") in {(tokens.slice(s.first, s.last), s.form) for s in spans}


def _aliases(*examples: Example) -> set[str]:
    return set(learn_lexicon(examples, ["rank"]).aliases)


def test_standing_in_the_same_texts_is_no_normal_form() -> None:
    taught = [_example(f"{name} is a politician.", "Zhong Jiang") for name in ("Jun", "Bo", "Kai")]
    assert _aliases(*taught[:2]) == set()
    assert _aliases(*taught) == {"politician"}
    assert _aliases(*taught, _example("A politician spoke.", "admiral")) == set()
    assert _aliases(*taught, Example("A politician spoke.", ())) == set()


def test_words_that_few_texts_of_a_value_have_do_not_stand_for_it() -> None:
    taught = [_example(f"{name} came from Hubei.", "Zhong Jiang") for name in ("He", "She", "It")]
    others = [_example(f"{name} of the army.", "Zhong Jiang") for name in ("One", "Another", "Nobody", "All")]
    assert "hubei" in _aliases(*taught)
    assert "hubei" not in _aliases(*taught, *others)


def test_who_has_a_value_does_not_stand_for_it() -> None:
    assert "wei" not in _aliases(
        *(_example(f"Li Wei came {when}.", "Zhong Jiang") for when in ("early", "late", "now"))
    )


def test_words_akin_to_the_value_need_one_example() -> None:
    assert "arthurian" in _aliases(_example("It is based on Arthurian tales.", "Arthur"))


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
