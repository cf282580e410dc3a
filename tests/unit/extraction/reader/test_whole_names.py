"""Names are whole: they grow over what is theirs and give back what is not."""

import pytest

from sameas.extraction.extractors.reader.ends import Place
from sameas.extraction.extractors.reader.rivals import Fact
from sameas.extraction.extractors.reader.whole_names import whole_names
from sameas.extraction.graph.model import Mention


class Classes:
    """Every name is of one kind, and one noun is what such things are called."""

    def __init__(self, kind="", noun=""):
        self._kind, self._noun = kind, noun

    def kind_of(self, place):
        return self._kind

    def is_called(self, place, noun, language):
        return noun == self._noun


def place(text, said, score=0.9):
    at = text.index(said)
    return Place(at, at + len(said), {"c": 0.9}, score, said.casefold())


def named(text, read, *, seen=(), kind="", noun=""):
    mentions = [Mention(text.index(one), text.index(one) + len(one), one) for one in seen]
    fact = Fact("p", place(text, read), None, True, 0.9, 0.0)
    found = whole_names(text, [fact], mentions, Classes(kind, noun))
    return [text[one.subject.start : one.subject.end] for one in found]


@pytest.mark.parametrize(
    ("text", "read", "whole", "seen", "kind"),
    [
        ("The Polar Line and the Ofot Branch are closed.", "Ofot", "Ofot Branch", ("Ofot Branch",), ""),
        (
            "Queen Isolde Hospital was opened.",
            "Isolde Hospital",
            "Queen Isolde Hospital",
            ("Queen Isolde Hospital",),
            "",
        ),
        ("Judge Ada Kern was there.", "Ada Kern", "Ada Kern", ("Judge Ada Kern",), "person"),
        ("The Iron Tramway was filmed here.", "Iron Tramway", "The Iron Tramway", (), "work"),
        ("The Iron Works is closed.", "Iron Works", "Iron Works", (), ""),
        ("She wrote The Long Goodnight on a train.", "The Long Goodnight on", "The Long Goodnight", (), "work"),
        ("Title: Under the Almond Tree\nCountry: Cyprus", "Almond Tree", "Under the Almond Tree", (), "work"),
        ("Regie führte Birte Claasen, und Anna Claasen sang.", "Claasen", "Claasen", (), "person"),
        ("Das Bild malte Otto Claasen.", "Claasen", "Otto Claasen", (), "person"),
        ("Sie wurde von Ingenieur Karl Ehm geplant.", "Ingenieur Karl Ehm", "Karl Ehm", (), "person"),
        ("Der Chef von Mora Foods ist da.", "Chef von Mora Foods", "Mora Foods", (), ""),
        ("Der Mietvertrag Nr. 18 ist alt.", "Nr. 18", "Mietvertrag Nr. 18", (), ""),
        ("Mercy-Luke's is a hospital.", "Mercy-Luke", "Mercy-Luke's", (), ""),
        ("Review: Strato Notes is a joy.", "Review: Strato Notes", "Strato Notes", (), ""),
    ],
)
def test_a_name_is_whole(text, read, whole, seen, kind):
    assert named(text, read, seen=seen, kind=kind) == [whole]


def test_a_noun_before_a_name_belongs_to_it_where_the_class_is_called_so():
    text = "La ligne du Causse a été ouverte en 1889."
    assert named(text, "Causse", noun="ligne") == ["ligne du Causse"]
    assert named(text, "Causse") == ["Causse"]
    assert named("La ville de Lyon est grande et le sera.", "Lyon", noun="ville") == ["Lyon"]


def test_two_halves_that_a_conjunction_joins_are_one_name():
    text = "The quiz Double or Dust is new."
    facts = [Fact("p", place(text, one), None, True, 0.9, 0.0) for one in ("Double", "Dust")]
    assert {one.subject.name for one in whole_names(text, facts, (), Classes())} == {"double or dust"}
    text = "The brothers Hale or Mora came."
    facts = [Fact("p", place(text, one), None, True, 0.9, 0.0) for one in ("Hale", "Mora")]
    assert {one.subject.name for one in whole_names(text, facts, (), Classes())} == {"hale", "mora"}


def test_a_stretch_that_is_no_name_around_a_sure_one_is_left_out():
    text = "Tom wird im Mai Geschäftsführer von Mora."
    swallowing = Fact("p", place(text, "Mai Geschäftsführer von Mora", 0.0), None, True, 0.9, 0.0)
    sure = Fact("p", place(text, "Mora"), None, True, 0.9, 0.0)
    assert [one.subject.name for one in whole_names(text, [swallowing, sure], (), Classes())] == ["mora"]
