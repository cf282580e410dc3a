"""Names without capitals are found by the words beside them, where the examples have such names."""

from sameas.extraction.extractors.learning import Example, Triple
from sameas.extraction.extractors.learning.candidates import learn_edges, plain_names
from sameas.extraction.extractors.learning.labels import cues_of
from sameas.extraction.extractors.learning.lexicon import NOBODY, Lexicon
from sameas.extraction.extractors.learning.schema import Property, Schema
from sameas.extraction.extractors.learning.tokens import tokenize
from sameas.extraction.extractors.learning.train import learn

SCHEMA = Schema(
    (
        Property(id="inhibits", label="inhibits", domain="Drug", range="Enzyme"),
        Property(id="treats", label="treats", domain="Drug", range="Disease"),
    ),
    {"Drug": "drug", "Enzyme": "enzyme", "Disease": "disease"},
)
DRUGS = [first + last for first in ("abro", "cilo", "fexo", "gabi", "lamo") for last in ("mab", "vir", "pril")]
ENZYMES = "renin thrombin aromatase urease lipase".split()
DISEASES = "gout|asthma|high blood pressure|malaria|migraine".split("|")


def _examples(*, capitals: bool = False) -> list[Example]:
    made = []
    for number, drug in enumerate(DRUGS):
        enzyme, disease = ENZYMES[number % len(ENZYMES)], DISEASES[(number * 2) % len(DISEASES)]
        name = drug.title() if capitals else drug
        made.append(Example(f"{name} inhibits {enzyme}.", (Triple(name, "inhibits", enzyme),)))
        made.append(Example(f"Patients with {disease} take {name}.", (Triple(name, "treats", disease),)))
    return made


def _names(text: str, examples: list[Example]) -> set[str]:
    properties = tuple(item.id for item in SCHEMA.properties)
    edges = learn_edges(examples, properties, cues_of(SCHEMA, properties))
    tokens = tokenize(text)
    found = plain_names(tokens, Lexicon({}, {}, {}, {}, edges), without=NOBODY)
    return {tokens.slice(first, last) for first, last in found}


def test_unseen_names_between_learned_words_are_candidates() -> None:
    assert _names("patients with acid reflux take zolmivir.", _examples()) == {"acid reflux", "zolmivir"}


def test_the_words_of_a_label_end_a_name() -> None:
    assert _names("zolmivir treats acid reflux.", _examples()) == {"zolmivir", "acid reflux"}


def test_names_with_capitals_teach_no_edges() -> None:
    assert not _names("zolmivir inhibits acid reflux.", _examples(capitals=True))


def test_facts_of_unseen_names_without_capitals_are_found() -> None:
    model = learn(_examples(), SCHEMA)
    found = {(t.subject.value, t.property, t.object.value) for t in model.extract("zolmivir inhibits chymase.")}
    assert found == {("zolmivir", "inhibits", "chymase")}
