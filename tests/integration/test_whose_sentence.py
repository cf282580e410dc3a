"""Whose sentence it is: what a pronoun at its begin goes on about, and who only reports what others do."""

import asyncio
from functools import lru_cache
from pathlib import Path

import pytest

import sameas
from sameas.extraction.extractors.confidence import least_confidence, sure_part
from sameas.extraction.extractors.embedded import find_weights
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.extractors.reader.extractor import ReaderExtractor
from sameas.extraction.extractors.reader.reading import load_reader
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.integration.test_must_never import ONTOLOGY

STORY = Path(sameas.__file__).parent / "example"
# Nothing that the last sentence says is said of Hale Textiles, the topic of the text or the one named last.
PRONOUNS = """
    Mora Foods works with Hale Textiles, which is based in Bath. Its chief executive is Ines Moor.
    Hale Textiles works with Mora Foods. Mora Foods is growing fast. Its chief executive is Ines Moor.
    Hale Textiles cooperates with the Kestrel Group. The Kestrel Group makes looms. It employs 310 people.
    Hale Textiles is a rival of Bolt Motors. Bolt Motors is old. It is based in Leeds.
    Hale Textiles was founded long ago. Mora Foods is younger. In 2020 it acquired Bolt Motors.
    Hale Textiles sued Bolt Motors in 2019. Bolt Motors won. Its headquarters are in Porto.
    Hale Textiles lost a customer. The Kestrel Group won one. Its chief executive is Tom Reed.
    Hale Textiles supplies Mora Foods. The firm Mora Foods pays late. It was founded on 3 May 1988.
    Hale Textiles sold a hall. In 2019 Bolt Motors rented it. Bolt Motors repairs lorries. It employs 85 people.
    Kestrel Group bought Hale Textiles in 2019. It employs 310 people.
    Hale Textiles arbeitet mit der Kestrel Group zusammen. Die Kestrel Group wächst. Ihre Geschäftsführerin ist Ines Moor.
    Hale Textiles beliefert die Mora Foods. Die Mora Foods kocht Suppen. Sie beschäftigt 85 Menschen.
    Hale Textiles verklagte Bolt Motors. Bolt Motors gewann. Ihr Geschäftsführer ist Tom Reed.
    Hale Textiles mietet Hallen. Mora Foods baut welche. Sie beschäftigt 310 Menschen.
    Hale Textiles ist alt. Kestrel Group ist jung. Ihr Sitz ist in Porto.
    Hale Textiles verlor einen Kunden. Bolt Motors gewann ihn. Sein Geschäftsführer ist Tom Reed.
    Hale Textiles wuchs. Im Jahr 2019 schrumpfte Mora Foods. Ihre Geschäftsführerin ist Ines Moor.
    Hale Textiles lobt das Unternehmen Mora Foods. Mora Foods schweigt. Es hat seinen Sitz in Leeds.
    Hale Textiles streitet mit Bolt Motors. Bolt Motors bleibt ruhig. Sie wurde am 3. Mai 1988 gegründet.
    Die Kestrel Group beliefert Hale Textiles. Ihre Geschäftsführerin ist Ines Moor.
    Hale Textiles coopère avec Mora Foods. Mora Foods grandit vite. Son siège se trouve à Nantes.
    Hale Textiles travaille avec Kestrel Group. Kestrel Group fabrique des métiers. Elle emploie 310 personnes.
    Hale Textiles poursuit Bolt Motors. Bolt Motors se tait. Son directeur général est Tom Reed.
    Hale Textiles est ancienne. La société Mora Foods est jeune. Elle a acheté Bolt Motors.
    Hale Textiles a perdu un client. En 2019, Kestrel Group a gagné. Son directeur général est Tom Reed.
    Hale Textiles loue des halles. Bolt Motors vend des camions. Elle a été fondée le 3 mai 1988.
    Hale Textiles félicite Mora Foods. Mora Foods remercie. Elle emploie 85 personnes.
    Hale Textiles vend des tissus. Kestrel Group vend des outils. Sa directrice générale est Ines Moor.
    Hale Textiles copie le groupe Bolt Motors. Le groupe Bolt Motors proteste. Il a son siège à Leeds.
    Mora Foods soutient Hale Textiles. Son siège est à Porto.
    Hale Textiles colabora con Mora Foods. Mora Foods crece. Su sede está en Oporto.
    Hale Textiles vende telas a Kestrel Group. Kestrel Group fabrica telares. Su directora general es Ines Moor.
    Hale Textiles demandó a Bolt Motors. Bolt Motors ganó. Su director general es Tom Reed.
    Hale Textiles es antigua. La empresa Mora Foods es joven. Su sede está en Leeds.
    Hale Textiles perdió un cliente. En 2019, Kestrel Group ganó otro. Su director general es Tom Reed.
    Hale Textiles alquila naves. Bolt Motors repara camiones. Ella emplea a 310 personas.
    Hale Textiles felicita a Mora Foods. Mora Foods responde. Su directora general es Ines Moor.
    Hale Textiles imita a Kestrel Group. Kestrel Group protesta. Su sede está en Porto.
    Hale Textiles apoya al grupo Bolt Motors. El grupo Bolt Motors crece. Él emplea a 85 personas.
    Mora Foods compite con Hale Textiles. Su director general es Tom Reed.
"""
# Who reports is no company that buys, employs or has its seat anywhere.
REPORTS = """
    Ines Moor reported that Kestrel Group, based in Bath, has bought Mora Foods.
    Tom Reed said on Monday that Hale Textiles employs 310 people.
    Ines Moor told Tom Reed that Kestrel Group acquired Bolt Motors.
    Tom Reed explained that Mora Foods was founded on 3 May 1988.
    Tom Reed announced that the firm Hale Textiles is based in Bath.
    Minutes of the meeting: Ines Moor confirmed that Bolt Motors bought Hale Textiles.
    Tom Reed wrote to the board that Mora Foods has acquired Kestrel Group.
    Ines Moor added that Hale Textiles, founded on 3 May 1988, is based in Leeds.
    In March Tom Reed stated that the shipyard Bolt Motors employs 85 people.
    Ines Moor mentioned in passing that Kestrel Group has acquired Mora Foods for 3 million euros.
    Tom Reed berichtete, dass Hale Textiles die Firma Mora Foods gekauft hat.
    Ines Moor teilte mit, dass Kestrel Group 310 Menschen beschäftigt.
    Tom Reed sagte am Montag, dass Mora Foods in Leeds ansässig ist.
    Ines Moor gab bekannt, dass Bolt Motors die Firma Hale Textiles gekauft hat.
    Tom Reed erklärte, dass die Werft Bolt Motors 85 Menschen beschäftigt.
    Ines Moor hat mitgeteilt, dass Kestrel Group am 3. Mai 1988 gegründet wurde.
    Tom Reed kündigte gestern an, dass Mora Foods in Bath ansässig ist.
    Ines Moor bestätigte, dass Hale Textiles, ansässig in Bath, Bolt Motors gekauft hat.
    Protokoll: Tom Reed erwähnte, dass Kestrel Group Mora Foods gekauft hat.
    Ines Moor schrieb, dass Bolt Motors 310 Menschen beschäftigt.
    Tom Reed a déclaré que Hale Textiles a acheté Mora Foods.
    Ines Moor a annoncé que Kestrel Group emploie 310 personnes.
    Tom Reed a indiqué lundi que Mora Foods est basée à Leeds.
    Ines Moor rapporte que Bolt Motors, basée à Bath, a racheté Hale Textiles.
    Tom Reed a expliqué que Kestrel Group a été fondée le 3 mai 1988.
    Ines Moor a fait savoir que Mora Foods a acheté Bolt Motors.
    Tom Reed précise que le chantier Bolt Motors emploie 85 personnes.
    Ines Moor dit que Hale Textiles a son siège à Porto.
    Tom Reed a confirmé au conseil que Kestrel Group a racheté Mora Foods.
    Ines Moor affirme que la société Hale Textiles emploie 310 personnes.
    Tom Reed informó de que Hale Textiles ha comprado Mora Foods.
    Ines Moor dijo que Kestrel Group tiene su sede en Oporto.
    Tom Reed anunció el lunes que Mora Foods emplea a 310 personas.
    Ines Moor comunicó que Bolt Motors, con sede en Bath, compró Hale Textiles.
    Tom Reed explicó que Kestrel Group fue fundada el 3 de mayo de 1988.
    Ines Moor señaló que el astillero Bolt Motors emplea a 85 personas.
    Tom Reed ha declarado que Mora Foods ha comprado Bolt Motors.
    Ines Moor confirmó al consejo que Hale Textiles está en Leeds.
    Tom Reed afirma que la empresa Kestrel Group compró Mora Foods.
    Ines Moor indicó que Hale Textiles emplea a 310 personas.
"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


@lru_cache
def pipeline(name: str, ontology: str) -> Pipeline:
    index = OntologyIndex(read_ontology(ontology.encode(), extension=".ttl"))
    if name == "lexicon":
        return Pipeline(index=index, extractor=LexiconExtractor(index))
    weights = find_weights()
    assert weights is not None
    return Pipeline(index=index, extractor=ReaderExtractor(index, load_reader(weights), digest=""))


def stated(
    text: str, extractor: str = "reader", *, least: float | None = None, ontology: str = ONTOLOGY
) -> set[tuple[str, str, str]]:
    found = asyncio.run(pipeline(extractor, ontology).run(text, key="k", formats=())).found
    names = {entity.id: entity.name for entity in found.entities}
    return {
        (names[one.subject], one.predicate.rpartition("#")[2], one.value.value if one.value else names[one.object])
        for one in sure_part(found, least_confidence(extractor, least)).relations
    }


@pytest.mark.parametrize("text", lines(PRONOUNS))
def test_a_pronoun_at_a_sentences_begin_is_of_the_subject_before(text):
    told = text[: text.rstrip(".").rindex(". ")]
    assert {one for one in stated(text) if one[0] == "Hale Textiles" and one[2] not in told} == set()


@pytest.mark.parametrize("extractor", ["reader", "lexicon"])
@pytest.mark.parametrize("text", lines(REPORTS))
def test_who_reports_is_not_the_subject_of_what_is_reported(text, extractor):
    facts = stated(text, extractor, least=0.0)
    assert {one for one in facts if {"Ines Moor", "Tom Reed"} & {one[0], one[2]}} == set()


def test_a_possessive_that_may_be_the_reporters_takes_the_sureness():
    facts = stated("Tom Reed kündigte gestern an, dass Mora Foods ihren Sitz in Bath hat.")
    assert not any("Tom Reed" in (subject, end) for subject, _, end in facts)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Kestrel Group announced that it has acquired Mora Foods.", ("Kestrel Group", "acquired", "Mora Foods")),
        ("Mora Foods said that its chief executive is Ines Moor.", ("Mora Foods", "chiefExecutive", "Ines Moor")),
        (
            "Mora Foods announced that Ines Moor is its new chief executive.",
            ("Mora Foods", "chiefExecutive", "Ines Moor"),
        ),
        ("Kestrel Group a annoncé qu'elle a acheté Mora Foods.", ("Kestrel Group", "acquired", "Mora Foods")),
        ("Ines Moor reported that Kestrel Group has bought Mora Foods.", ("Kestrel Group", "acquired", "Mora Foods")),
        ("Hale Textiles is based in Bath. It employs 310 people.", ("Hale Textiles", "employees", "310")),
        (
            "Mora Foods supplies Hale Textiles. Its chief executive is Ines Moor.",
            ("Mora Foods", "chiefExecutive", "Ines Moor"),
        ),
    ],
)
def test_what_goes_back_to_the_subject_is_said_of_it(text, fact):
    assert fact in stated(text)


def test_the_story_that_comes_along_is_told_true():
    facts = stated((STORY / "story.txt").read_text("utf-8"), ontology=(STORY / "company.ttl").read_text("utf-8"))
    assert {(subject, end) for subject, name, end in facts if name == "founder"} == {
        ("Nordlicht Speicher", "Jürgen Möller"),
        ("Nordlicht Speicher", "Hélène Aubert"),
        ("Ampère Lyonnais SAS", "Sylvie Carpentier"),
        ("Baterías Fuentes", "Mateo Fuentes"),
        ("Baterías Fuentes", "Lucía Ortega"),
        ("Institut Wattmann", "Ingeborg Saalfeld"),
        ("Fondation Aubert", "Hélène Aubert"),
    }
    assert {(subject, end) for subject, name, end in facts if name == "wonPrize"} == {
        ("Nordlicht Speicher", "Prix Lavoisier"),
        ("Nordlicht Speicher", "Hansepreis"),
        ("Annegret Thomsen", "Hansepreis"),
    }
    assert ("Polaris 40", "launchDate", "2021-09-02") not in facts
    assert ("Hélène Aubert", "worksFor", "Weserstahl AG") not in facts
