"""A property writes its values as its examples do, and takes only what its range allows or its examples have."""

from collections import Counter

from sameas.extraction.extractors.learning import Example, Property, Schema, Triple
from sameas.extraction.extractors.learning.forms import AffixCounter, allowed_sorts, choose_styles, shortens
from sameas.extraction.extractors.learning.observations import observe
from sameas.extraction.extractors.learning.styles import SORTS


def test_the_commonest_style_wins() -> None:
    forms = choose_styles(Counter({("P1", "day", "iso"): 3, ("P1", "day", "as is"): 1}))
    assert forms.styles[("P1", "day")] == "iso"


def test_words_that_a_property_adds_are_learned_from_two_values() -> None:
    counter = AffixCounter()
    counter.note("P1", "English language", ["English", "film"])
    assert counter.affixes() == {}
    counter.note("P1", "Welsh language", ["Welsh"])
    assert counter.affixes() == {"P1": ("affix\x1f\x1f language",)}


def test_words_are_not_added_where_the_text_has_the_whole_value() -> None:
    schema = Schema((Property("P1", "language"),))
    texts = ["It is an English film.", "It is a Welsh film.", "The Irish language is spoken."]
    values = ["English language", "Welsh language", "Irish language"]
    seen = observe([Example(t, (Triple("It", "P1", v),)) for t, v in zip(texts, values, strict=True)], schema)
    assert seen.forms.styles[("P1", "text")] == "affix\x1f\x1f language"


def test_a_date_property_takes_dates_only() -> None:
    item = Property("P1", "born", datatype="http://www.w3.org/2001/XMLSchema#date")
    assert allowed_sorts(item, choose_styles(Counter())) == ("day", "month", "year")


def test_a_property_between_things_takes_no_bare_number() -> None:
    assert allowed_sorts(Property("P1", "author", range="Q5"), choose_styles(Counter())) == ("form", "text")


def test_what_the_examples_have_is_always_taken() -> None:
    forms = choose_styles(Counter({("P1", "year", "as is"): 1}))
    assert "year" in allowed_sorts(Property("P1", "author", range="Q5"), forms)


def test_without_a_known_range_everything_is_taken() -> None:
    assert allowed_sorts(Property("P1", "note"), choose_styles(Counter())) == SORTS


def _named(text: str, name: str) -> Example:
    return Example(text, (Triple(name, "P1", "something"),))


def test_names_are_shortened_only_where_two_examples_do_so() -> None:
    one = _named("Rosa Maria Vega sang.", "Rosa Vega")
    other = _named("A man, Jan Piet Smit, came.", "Jan Smit")
    assert shortens([one, other], {"P1"})
    assert not shortens([one, one], {"P1"})
    assert not shortens([one, other], {"P2"})
    assert not shortens([one, _named("A man, Jan Piet Smit, came.", "Jan Piet Smit")], {"P1"})


def test_a_title_with_a_last_name_is_no_shortened_name() -> None:
    titled = [_named("Admiral Roger Curtis sailed.", "Admiral Curtis"), _named("Sir Jan Smit came.", "Sir Smit")]
    assert not shortens(titled, {"P1"})
