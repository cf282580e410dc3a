"""The questions that extraction asks."""

import time

import pytest

from sameas.ontology import OntologyIndex, Verdict, load_ontology, read_ontology
from sameas.ontology.hierarchy import Hierarchy
from tests.shared_data import shared

from .samples import COMPANY, EX, PREFIXES

XSD = "http://www.w3.org/2001/XMLSchema#"
OK, WRONG, NO = Verdict.OK, Verdict.WRONG_DIRECTION, Verdict.NO


def index_of(text: str) -> OntologyIndex:
    return OntologyIndex(read_ontology((PREFIXES + text).encode()))


@pytest.fixture(scope="module")
def company() -> OntologyIndex:
    return OntologyIndex(read_ontology(COMPANY.encode()))


@pytest.fixture(scope="module")
def schema() -> OntologyIndex:
    return OntologyIndex(load_ontology(shared("data", "ontologies", "schemaorg.ttl")))


@pytest.mark.parametrize(
    ("subject", "name", "value", "verdict"),
    [
        ("Person", "worksFor", "Company", OK),
        ("Robot", "worksFor", "Firm", OK),
        ("Company", "worksFor", "Person", WRONG),
        ("Place", "worksFor", "Company", NO),
        ("Person", "worksFor", "Place", NO),
        ("Startup", "hasHead", "Person", OK),
        ("Person", "hasHead", "Startup", WRONG),
        ("Person", "relatedTo", "Company", OK),
        ("Organization", "employs", "Robot", OK),
        ("Person", "employs", "Company", WRONG),
        ("Robot", "basedIn", "Place", OK),
        ("Person", "basedIn", "Place", NO),
        ("Person", "job", "Company", OK),
        ("Person", "unknown", "Company", NO),
        ("Unknown", "worksFor", "Company", NO),
    ],
)  # fmt: skip
def test_domain_and_range_hold_with_subclasses_and_direction(
    company: OntologyIndex, subject: str, name: str, value: str, verdict: Verdict
) -> None:
    assert company.allows(EX + subject, EX + name, EX + value) is verdict


@pytest.mark.parametrize(
    ("subject", "name", "value", "verdict"),
    [
        ("Company", "founded", XSD + "date", OK),
        ("Company", "founded", XSD + "string", NO),
        ("Person", "founded", XSD + "date", NO),
        ("Company", "founded", EX + "Place", NO),
        ("Company", "headcount", EX + "Count", OK),
        ("Company", "hasHead", XSD + "string", NO),
        ("Company", "status", XSD + "string", OK),
        ("Company", "status", XSD + "token", OK),
    ],
)
def test_values_hold_their_datatype(
    company: OntologyIndex, subject: str, name: str, value: str, verdict: Verdict
) -> None:
    assert company.allows(EX + subject, EX + name, value) is verdict


def test_all_values_from_narrows_the_range_for_a_class() -> None:
    index = index_of(
        ":p a owl:ObjectProperty . :A a owl:Class . :B a owl:Class ; rdfs:subClassOf "
        "[ a owl:Restriction ; owl:onProperty :p ; owl:allValuesFrom :A ] . :C a owl:Class ; rdfs:subClassOf :B ."
    )
    assert index.allows(EX + "C", EX + "p", EX + "A") is OK
    assert index.allows(EX + "C", EX + "p", EX + "C") is NO
    assert index.properties_for(EX + "C") == (EX + "p",)


def test_the_expected_range_is_what_the_restricting_classes_allow_where_there_is_no_range() -> None:
    index = index_of(
        ":A a owl:Class ; rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :p ; owl:allValuesFrom :B ] ."
        ":C a owl:Class ; rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :p ; owl:allValuesFrom :D ] ,"
        " [ a owl:Restriction ; owl:onProperty :q ; owl:allValuesFrom :D ] ."
        ":p a owl:ObjectProperty . :q a owl:ObjectProperty ; rdfs:range :B ."
    )
    assert index.range(f"{EX}p") == ()
    assert index.expected_range(f"{EX}p") == ((f"{EX}B", f"{EX}D"),)
    assert index.expected_range(f"{EX}q") == ((f"{EX}B",),)
    assert index.range_for(f"{EX}A", f"{EX}p") == ((f"{EX}B",),)
    assert index.range_for(f"{EX}C", f"{EX}q") == ((f"{EX}B",), (f"{EX}D",))


def test_a_cardinality_of_none_forbids() -> None:
    index = index_of(
        ":p a owl:ObjectProperty ; rdfs:range :A . :A a owl:Class . :B a owl:Class ; rdfs:subClassOf "
        "[ owl:onProperty :p ; owl:maxCardinality 0 ] ."
    )
    assert index.allows(EX + "B", EX + "p", EX + "A") is NO
    assert index.allows(EX + "A", EX + "p", EX + "A") is OK


def test_several_domains_mean_all_and_domain_includes_means_any() -> None:
    index = index_of(
        ":A a owl:Class . :B a owl:Class . :C a owl:Class ; rdfs:subClassOf :A , :B . "
        ":all rdfs:domain :A , :B . :any schema:domainIncludes :A , :B . "
        ":both rdfs:domain [ owl:intersectionOf ( :A :B ) ] . :either rdfs:domain [ owl:unionOf ( :A :B ) ] ."
    )
    assert index.properties_for(EX + "A") == (EX + "any", EX + "either")
    assert index.properties_for(EX + "C") == (EX + "all", EX + "any", EX + "both", EX + "either")


def test_domain_and_range_come_from_the_property_above_or_the_inverse() -> None:
    index = index_of(
        ":p rdfs:domain :A ; rdfs:range :B . :q rdfs:subPropertyOf :p . :r owl:inverseOf :p ; a owl:ObjectProperty . "
        ":s a owl:SymmetricProperty ; rdfs:domain :A ."
    )
    assert index.domain(EX + "q") == ((EX + "A",),)
    assert index.range(EX + "r") == ((EX + "A",),)
    assert index.domain(EX + "r") == ((EX + "B",),)
    assert index.range(EX + "s") == ((EX + "A",),)


def test_circles_of_properties_end() -> None:
    index = index_of(":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p . :r owl:inverseOf :r ; a rdf:Property .")
    assert index.domain(EX + "p") == ()
    assert index.range(EX + "r") == ()


def test_a_long_chain_of_properties_is_safe() -> None:
    count = 3_000
    chain = "".join(f":p{n} rdfs:subPropertyOf :p{n + 1} ." for n in range(count))
    index = index_of(chain + f":p{count} rdfs:domain :A . :q owl:inverseOf :p0 ; a owl:ObjectProperty .")
    assert index.domain(EX + "p0") == ((EX + "A",),)
    assert index.range(EX + "q") == ((EX + "A",),)


def test_a_circle_of_subclasses_is_one_class() -> None:
    index = index_of(
        ":A rdfs:subClassOf :B . :B rdfs:subClassOf :C . :C rdfs:subClassOf :A . :D rdfs:subClassOf :A ; a owl:Class . "
        ":A rdfs:subClassOf :Top . :p rdfs:domain :B . :A a owl:Class ."
    )
    assert index.class_tree.same(EX + "A") == (EX + "A", EX + "B", EX + "C")
    assert all(index.is_subclass(EX + one, EX + other) for one in "ABC" for other in "ABC")
    assert index.is_subclass(EX + "D", EX + "C")
    assert not index.is_subclass(EX + "C", EX + "D")
    assert index.properties_for(EX + "D") == (EX + "p",)
    assert index.ancestors(EX + "D") == (EX + "A", EX + "B", EX + "C", EX + "Top")
    assert index.ancestors(EX + "B") == (EX + "Top",)
    assert index.descendants(EX + "Top") == (EX + "A", EX + "B", EX + "C", EX + "D")
    assert index.roots == (EX + "Top",)


def test_a_class_below_itself_is_no_circle() -> None:
    assert index_of(":A a owl:Class ; rdfs:subClassOf :A .").class_tree.circles() == ()


def test_a_chain_and_a_circle_of_many_classes_are_quick() -> None:
    count = 20_000
    chain = {f"c{n}": [f"c{n + 1}"] for n in range(count)}
    start = time.process_time()
    assert len(Hierarchy(chain, {}).above("c0")) == count + 1
    circle = Hierarchy({**chain, f"c{count}": ["c0"]}, {})
    assert len(circle.same("c5")) == count + 1
    assert time.process_time() - start < 2


def test_unions_and_intersections_place_classes(company: OntologyIndex) -> None:
    assert company.is_subclass(EX + "Startup", EX + "Company")
    assert company.is_subclass(EX + "Firm", EX + "Organization")
    index = index_of(
        ":A a owl:Class ; owl:equivalentClass [ owl:unionOf ( :B :C ) ] . :D owl:disjointUnionOf ( :E :F ) ."
    )
    assert index.descendants(EX + "A") == (EX + "B", EX + "C")
    assert index.descendants(EX + "D") == (EX + "E", EX + "F")
    assert index.are_disjoint(EX + "E", EX + "F")


def test_disjointness_is_inherited(company: OntologyIndex) -> None:
    assert company.are_disjoint(EX + "Startup", EX + "Person")
    assert company.are_disjoint(EX + "Place", EX + "Robot")
    assert not company.are_disjoint(EX + "Person", EX + "Agent")
    index = index_of(":A a owl:Class ; rdfs:subClassOf [ owl:complementOf :B ] .")
    assert index.are_disjoint(EX + "B", EX + "A")


def test_restrictions_are_inherited_with_their_numbers(company: OntologyIndex) -> None:
    found = {(one.property, one.kind, one.maximum) for one in company.restrictions(EX + "Startup")}
    assert (EX + "hasHead", "cardinality", 1) in found
    assert (EX + "employs", "some", None) in found


def test_every_kind_of_restriction_is_read() -> None:
    index = index_of(
        ":p a owl:ObjectProperty . :d a owl:DatatypeProperty . :C a owl:Class ; rdfs:subClassOf "
        "[ owl:onProperty [ owl:inverseOf :p ] ; owl:someValuesFrom owl:Thing ] , "
        "[ owl:onProperty :p ; owl:qualifiedCardinality 2 ; owl:onClass :A ] , "
        "[ owl:onProperty :p ; owl:minQualifiedCardinality 1 ; owl:onClass [ owl:intersectionOf ( :A :B ) ] ] , "
        "[ owl:onProperty :d ; owl:hasValue 7 ] , [ owl:onProperty :p ; owl:allValuesFrom owl:Nothing ] ."
    )
    found = {
        (one.property[-1], one.kind, one.inverse, one.filler, one.minimum, one.maximum, one.value)
        for one in index.restrictions(EX + "C")
    }
    a, b = EX + "A", EX + "B"
    assert found == {
        ("p", "some", True, (), 0, None, ""),
        ("p", "cardinality", False, ((a,),), 2, 2, ""),
        ("p", "cardinality", False, ((a,), (b,)), 1, None, ""),
        ("d", "value", False, (), 0, None, "7"),
        ("p", "all", False, ((),), 0, None, ""),
    }


def test_a_union_with_everything_is_everything_and_an_empty_one_is_nothing() -> None:
    index = index_of(
        ":p rdfs:domain [ owl:unionOf ( :A owl:Thing ) ] . :q rdfs:domain [ owl:unionOf () ] . "
        ":r rdfs:domain [ owl:unionOf ( :A [ owl:intersectionOf ( :B :C ) ] ) ] ."
    )
    a, b, c = EX + "A", EX + "B", EX + "C"
    assert index.domain(EX + "p") == ()
    assert index.domain(EX + "q") == ((),)
    assert index.domain(EX + "r") == ((a, b), (a, c))


def test_traits_are_kept(company: OntologyIndex) -> None:
    assert company.properties[EX + "hasHead"].functional
    assert company.properties[EX + "relatedTo"].symmetric
    assert company.properties[EX + "status"].values == ("closed", "open")
    assert company.properties[EX + "founded"].kind == "datatype"


def test_individuals_are_a_lexicon(company: OntologyIndex) -> None:
    texts = {(entry.text, entry.kind, entry.iri.removeprefix(EX)) for entry in company.lexicon()}
    assert ("Acme Ltd", "individual", "acme") in texts
    assert ("Acme", "individual", "acme") in texts
    assert ("small", "individual", "small") in texts
    assert company.individuals[EX + "small"].types == (EX + "Size",)
    assert company.individuals[EX + "acme"].same_as == ("https://example.org/things/acme",)


def test_the_lexicon_has_labels_alternative_labels_and_patterns(company: OntologyIndex) -> None:
    texts = {(entry.text, entry.lang, entry.kind) for entry in company.lexicon()}
    assert ("personne", "fr", "class") in texts
    assert ("human being", "en", "class") in texts
    assert ("is employed by", "en", "property") in texts
    assert ("{subject} joined {object}", "en", "pattern") in texts


def test_a_label_written_as_one_word_is_read_as_its_words_too() -> None:
    index = index_of(
        ':worksFor a owl:ObjectProperty ; rdfs:label "worksFor" . :C a owl:Class ; rdfs:label "LocalBusiness" .'
        ':y a :C ; rdfs:label "YouTube" . :p a owl:ObjectProperty ; rdfs:label "born in", "date_of_birth" .'
    )
    texts = {(entry.text, entry.preferred) for entry in index.lexicon()}
    assert {("works for", True), ("worksFor", True), ("local business", True), ("date of birth", True)} <= texts
    assert ("you tube", True) not in texts


def test_a_term_without_a_label_is_named_by_its_iri_and_a_deprecated_one_is_left_out(
    company: OntologyIndex,
) -> None:
    texts = {entry.text: entry for entry in company.lexicon()}
    assert not texts["Firm"].preferred
    assert "old thing" not in texts
    index = index_of(":hasParentCompany a owl:ObjectProperty . :New_York a :City .")
    assert {"has parent company", "New York", "City"} == {entry.text for entry in index.lexicon()}


def test_schema_org_inherits_properties_and_accepts_its_datatypes(schema: OntologyIndex) -> None:
    base = "https://schema.org/"
    assert base + "name" in schema.properties_for(base + "Corporation")
    assert schema.allows(base + "Person", base + "worksFor", base + "Corporation") is OK
    assert schema.allows(base + "Corporation", base + "worksFor", base + "Person") is WRONG
    assert schema.allows(base + "Person", base + "birthDate", XSD + "date") is OK
    assert schema.allows(base + "Person", base + "birthDate", XSD + "boolean") is NO
    assert schema.allows(base + "Person", base + "name", XSD + "string") is OK


def test_an_object_property_without_a_range_takes_values() -> None:
    index = OntologyIndex(load_ontology(shared("data", "text2kgbench", "ontologies", "owl", "ont_1_movie.ttl")))
    base = "https://cenguix.github.io/Text2KGBench/ont_1_movie/"
    assert index.allows(base + "concepts#Q11424", base + "relations#P577", XSD + "date") is OK
    assert index.allows(base + "concepts#Q11424", base + "relations#P57", XSD + "date") is NO


def test_wine_restrictions_and_enumerations_are_read() -> None:
    index = OntologyIndex(load_ontology(shared("data", "ontologies", "wine.rdf")))
    wine = "http://www.w3.org/2002/03owlt/miscellaneous/consistent001#"
    assert index.is_subclass(wine + "Riesling", wine + "Wine")
    assert wine + "WineColor" in index.individuals[wine + "Red"].types
    assert any(one.kind == "value" for one in index.restrictions(wine + "Riesling"))
