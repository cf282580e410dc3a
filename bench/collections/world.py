"""Generated documents with known truth: people, companies and places, named as documents name them.

A name may come with initials, with a slip, as an alias, as an acronym, under a former name; some people are namesakes.
What a document says is an extraction result, as if an extractor had read it without error: here resolution is
measured, not reading.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value, entity_id
from sameas.ontology.load import read_ontology
from sameas.ontology.model import Ontology

NS = "https://example.org/press#"
PERSON, COMPANY, PLACE = NS + "Person", NS + "Company", NS + "Place"
_STRING = "http://www.w3.org/2001/XMLSchema#string"
TURTLE = b"""
@prefix : <https://example.org/press#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<https://example.org/press> a owl:Ontology .
:Person a owl:Class ; rdfs:label "person" ; owl:disjointWith :Company , :Place .
:Company a owl:Class ; rdfs:label "company" ; owl:disjointWith :Place .
:Place a owl:Class ; rdfs:label "place" .
:worksFor a owl:ObjectProperty ; rdfs:label "works for" ; rdfs:domain :Person ; rdfs:range :Company .
:livesIn a owl:ObjectProperty ; rdfs:label "lives in" ; rdfs:domain :Person ; rdfs:range :Place .
:knows a owl:ObjectProperty ; rdfs:label "knows" ; rdfs:domain :Person ; rdfs:range :Person .
:partnerOf a owl:ObjectProperty ; rdfs:label "partner of" ; rdfs:domain :Company ; rdfs:range :Company .
:seatedIn a owl:ObjectProperty ; rdfs:label "seated in" ; rdfs:domain :Company ; rdfs:range :Place .
:born a owl:DatatypeProperty , owl:FunctionalProperty ; rdfs:label "born" ; rdfs:domain :Person ; rdfs:range xsd:string .
:founded a owl:DatatypeProperty , owl:FunctionalProperty ; rdfs:label "founded" ; rdfs:domain :Company ; rdfs:range xsd:string .
:registration a owl:DatatypeProperty , owl:InverseFunctionalProperty ; rdfs:label "registration" ; rdfs:domain :Company ;
  rdfs:range xsd:string .
"""
_STARTS = [
    "ba",
    "be",
    "bi",
    "bo",
    "bu",
    "da",
    "de",
    "di",
    "do",
    "du",
    "fa",
    "fe",
    "fi",
    "ga",
    "ge",
    "go",
    "ha",
    "he",
    "ho",
    "ja",
    "jo",
    "ka",
    "ke",
    "ki",
    "ko",
    "la",
    "le",
    "li",
    "lo",
    "lu",
    "ma",
    "me",
    "mi",
    "mo",
    "mu",
    "na",
    "ne",
    "ni",
    "no",
    "pa",
    "pe",
    "pi",
    "po",
    "ra",
    "re",
    "ri",
    "ro",
    "ru",
    "sa",
    "se",
    "si",
    "so",
    "ta",
    "te",
    "ti",
    "to",
    "va",
    "ve",
    "vi",
    "wa",
    "wi",
    "za",
    "ze",
]
_ENDS = [
    "lan",
    "ner",
    "ris",
    "ton",
    "man",
    "sen",
    "der",
    "vin",
    "mar",
    "tis",
    "lor",
    "nez",
    "dal",
    "ber",
    "kov",
    "ski",
    "rup",
    "tel",
    "gar",
    "nou",
    "ves",
    "min",
    "dro",
    "les",
]


def ontology() -> Ontology:
    return read_ontology(TURTLE)


@dataclass
class Thing:
    number: int
    kind: str
    name: str
    aliases: list[str] = field(default_factory=list)
    former: str = ""
    year: str = ""
    registration: str = ""
    place: int = 0
    company: int = 0
    friends: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Written:
    """A generated document: its name, what it says, and which thing of the world each of its entities is."""

    name: str
    graph: KnowledgeGraph
    truth: dict[str, int]


class World:
    """Things, and documents about them. `size` is the number of people."""

    def __init__(self, size: int, *, seed: int = 1, hard: bool = True) -> None:
        self._random = random.Random(seed)
        self.things: list[Thing] = []
        self._hard = hard
        names = _Names(self._random)
        self.places = [self._add(PLACE, names.place()) for _ in range(max(5, size // 40))]
        self.companies = [self._company(names) for _ in range(max(5, size // 8))]
        self.people = [self._person(names) for _ in range(size)]
        for company in self.companies:
            company.friends = [self._random.choice(self.companies).number for _ in range(3)]
        self._staff: dict[int, list[Thing]] = {}
        for person in self.people:
            self._staff.setdefault(person.company, []).append(person)
        for person in self.people:
            around = self._staff[person.company]
            person.friends = [self._random.choice(around).number for _ in range(2)]

    def _add(self, kind: str, name: str) -> Thing:
        thing = Thing(len(self.things), kind, name)
        self.things.append(thing)
        return thing

    def _company(self, names: "_Names") -> Thing:
        draw = self._random
        thing = self._add(COMPANY, names.company())
        thing.year = str(draw.randint(1880, 2020))
        thing.registration = f"R{draw.randint(10**9, 10**10)}"
        thing.place = draw.choice(self.places).number
        if len(thing.name.split()) >= 3:
            thing.aliases.append("".join(word[0] for word in thing.name.split()[:-1]).upper())
        if self._hard and draw.random() < 0.15:
            thing.former = names.company()
        return thing

    def _person(self, names: "_Names") -> Thing:
        draw = self._random
        older = [one for one in self.things[-40:] if one.kind == PERSON]
        is_namesake = self._hard and older and draw.random() < 0.04
        thing = self._add(PERSON, draw.choice(older).name if is_namesake else names.person())
        thing.year = f"{draw.randint(1930, 2004)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
        thing.company = draw.choice(self.companies).number
        thing.place = draw.choice(self.places).number
        return thing

    def documents(self, count: int, *, statements: int = 12, seed: int = 7) -> Iterator[Written]:
        """So many documents, each about a company and its surroundings, with about so many statements."""
        draw = random.Random(seed)
        for number in range(count):
            yield self._document(f"doc-{number:06}", random.Random(draw.randrange(1 << 62)), statements)

    def _document(self, name: str, draw: random.Random, statements: int) -> Written:
        page = _Page(self, draw, hard=self._hard)
        while page.size < statements:
            company = draw.choice(self.companies)
            page.about_company(company)
            staff = self._staff.get(company.number, [])
            for person in draw.sample(staff, min(len(staff), draw.randint(1, 4))):
                page.about_person(person)
        return page.written(name)


class _Page:
    """A document while it is written. A thing has one name in it."""

    def __init__(self, world: World, draw: random.Random, *, hard: bool) -> None:
        self._world = world
        self._draw = draw
        self._hard = hard
        self._entities: dict[int, Entity] = {}
        self._relations: dict[tuple[str, ...], Relation] = {}
        self._taken: dict[str, int] = {}

    @property
    def size(self) -> int:
        return len(self._relations)

    def about_company(self, company: Thing) -> None:
        draw = self._draw
        if draw.random() < 0.4:
            self._value(company, "founded", company.year)
        if draw.random() < 0.35 or (company.former and draw.random() < 0.5):
            self._value(company, "registration", company.registration)
        self._relation(company, "seatedIn", company.place)
        for partner in draw.sample(company.friends, 1):
            if partner != company.number:
                self._relation(company, "partnerOf", partner)

    def about_person(self, person: Thing) -> None:
        draw = self._draw
        self._relation(person, "worksFor", person.company)
        if draw.random() < 0.7:
            self._relation(person, "livesIn", person.place)
        if draw.random() < 0.5:
            self._value(person, "born", person.year)
        friend = draw.choice(person.friends)
        if friend != person.number and draw.random() < 0.6:
            self._relation(person, "knows", friend)

    def written(self, name: str) -> Written:
        truth = {entity.id: number for number, entity in self._entities.items()}
        graph = KnowledgeGraph.of(entities=self._entities.values(), relations=self._relations.values())
        return Written(name, graph, truth)

    def _entity(self, number: int) -> Entity | None:
        if number in self._entities:
            return self._entities[number]
        thing = self._world.things[number]
        name, aliases = self._named(thing)
        if self._taken.setdefault(f"{thing.kind} {name}", number) != number:
            # Two things of one name in one document are told apart by nobody: the document leaves one out.
            return None
        entity = Entity(entity_id(name, thing.kind), name, (thing.kind,), aliases, (Evidence(0, len(name), name),))
        self._entities[number] = entity
        return entity

    def _named(self, thing: Thing) -> tuple[str, tuple[str, ...]]:
        draw, name = self._draw, thing.name
        if not self._hard:
            return name, ()
        if thing.former and draw.random() < 0.35:
            return thing.former, ((name,) if draw.random() < 0.5 else ())
        chance = draw.random()
        if chance < 0.06:
            return _slip(name, draw), ()
        if thing.kind == PERSON and chance < 0.14:
            first, *rest = name.split()
            return " ".join([f"{first[0]}.", *rest]), ()
        if thing.aliases and chance < 0.16:
            return (thing.aliases[0], (name,)) if draw.random() < 0.7 else (thing.aliases[0], ())
        if thing.aliases and chance < 0.3:
            return name, (thing.aliases[0],)
        return name, ()

    def _relation(self, subject: Thing, predicate: str, number: int) -> None:
        one, other = self._entity(subject.number), self._entity(number)
        if one is not None and other is not None and one.id != other.id:
            self._keep(Relation(one.id, NS + predicate, other.id, evidence=_quote(one, predicate, other.name)))

    def _value(self, subject: Thing, predicate: str, value: str) -> None:
        one = self._entity(subject.number)
        if one is not None:
            said = Value(value, _STRING)
            self._keep(Relation(one.id, NS + predicate, value=said, evidence=_quote(one, predicate, value)))

    def _keep(self, relation: Relation) -> None:
        self._relations[relation.triple] = relation


class _Names:
    """Names that look like names, drawn from pools large enough that most are rare."""

    def __init__(self, draw: random.Random) -> None:
        self._random = draw
        self._given = sorted({self._word(2) for _ in range(400)})
        self._family = sorted({self._word(draw.choice((2, 3))) for _ in range(6000)})
        self._used: set[str] = set()

    def _word(self, syllables: int) -> str:
        draw = self._random
        return "".join([*(draw.choice(_STARTS) for _ in range(syllables - 1)), draw.choice(_ENDS)]).capitalize()

    def _unused(self, make: "object") -> str:
        while True:
            name = make()  # type: ignore[operator]
            if name not in self._used:
                self._used.add(name)
                return name

    def person(self) -> str:
        return self._unused(lambda: f"{self._random.choice(self._given)} {self._random.choice(self._family)}")

    def place(self) -> str:
        return self._unused(lambda: f"{self._word(2)}{self._random.choice(('burg', 'ford', 'ville', 'stad'))}")

    def company(self) -> str:
        draw = self._random
        kinds = ("Systems", "Energy", "Foods", "Logistics", "Media", "Textiles", "Optics", "Marine")
        heads = draw.choice((1, 1, 2))
        words = [self._word(3) for _ in range(heads)]
        return self._unused(lambda: " ".join([*words, draw.choice(kinds), draw.choice(("Ltd", "AG", "Inc", "GmbH"))]))


def _slip(name: str, draw: random.Random) -> str:
    """One letter of a long word other, twice, missing, or two turned round."""
    words = name.split()
    long = [place for place, word in enumerate(words) if len(word) >= 5]
    if not long:
        return name
    place = draw.choice(long)
    word = words[place]
    at = draw.randint(2, len(word) - 2)
    match draw.randrange(4):
        case 0:
            word = word[:at] + draw.choice("aeioumnrt") + word[at + 1 :]
        case 1:
            word = word[:at] + word[at] + word[at:]
        case 2:
            word = word[:at] + word[at + 1 :]
        case _:
            word = word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]
    words[place] = word
    return " ".join(words)


def _quote(one: Entity, predicate: str, other: str) -> tuple[Evidence, ...]:
    text = f"{one.name} {predicate} {other}."
    return (Evidence(0, len(text), text),)
