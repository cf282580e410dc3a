"""Sentences that take back what they name, and some that do not, in four languages: judged by their ends alone, so that
no extractor, however eager, can have such a claim stated.
"""

import pytest

from sameas.extraction.graph.stance import claim_stance
from sameas.extraction.text.chunking import sentence_spans
from sameas.extraction.text.document import Span

FIRM = "Hale Textiles"
OTHERS = ("Leeds", "Mora Foods", "Tom Reed")
LABELS = (
    "acquired", "bought", "headquartered in", "CEO", "chief executive", "Geschäftsführer", "Sitz", "kaufte", "siège",
    "directeur", "racheté", "sede", "director", "compró",
)  # fmt: skip
TAKEN_BACK = {
    "en": """
Hale Textiles lacks a headquarters in Leeds.
Hale Textiles has yet to acquire Mora Foods.
Hale Textiles almost acquired Mora Foods.
Hale Textiles nearly bought Mora Foods.
Hale Textiles was to acquire Mora Foods.
Hale Textiles acquired Mora Foods, but the deal fell through.
Hale Textiles bought Mora Foods, then withdrew.
Hale Textiles is said, wrongly, to have acquired Mora Foods.
Hale Textiles is wrongly called the firm that acquired Mora Foods.
Hale Textiles acquired Mora Foods, a blogger wrote, wrongly.
A blogger wrote that Hale Textiles acquired Mora Foods.
Some rivals say that Hale Textiles acquired Mora Foods.
As a joke, the chairman said that Hale Textiles acquired Mora Foods.
Reports of Hale Textiles acquiring Mora Foods are untrue.
Stories that Hale Textiles acquired Mora Foods proved to be unfounded.
Hale Textiles is looking for a CEO after Tom Reed.
Former chief executive Tom Reed of Hale Textiles wrote a book.
The CEO of Hale Textiles, Tom Reed, has been replaced.
Hale Textiles moved its headquarters from Leeds to York.
Tom Reed, whose brother Karl Moor founded Hale Textiles, lives in York.
Tom Reed of Hale Textiles was named CEO of the Year.
Tom Reed as CEO of Hale Textiles has made way for Karl Moor.
Hale Textiles isn't headquartered in Leeds.
Hale Textiles is hardly headquartered in Leeds.
Contrary to reports, Hale Textiles is headquartered nowhere near Leeds.
It is not true that Hale Textiles is headquartered in Leeds.
It is false that Hale Textiles acquired Mora Foods.
Nobody believes that Hale Textiles acquired Mora Foods.
Hale Textiles failed to acquire Mora Foods.
Hale Textiles abandoned its bid to acquire Mora Foods.
Hale Textiles called off the purchase of Mora Foods.
Hale Textiles walked away from buying Mora Foods.
Hale Textiles was blocked from acquiring Mora Foods.
Hale Textiles was prevented from acquiring Mora Foods.
Hale Textiles stopped short of acquiring Mora Foods.
Hale Textiles ruled out acquiring Mora Foods.
Hale Textiles lost the chance to acquire Mora Foods.
Hale Textiles avoided acquiring Mora Foods.
Far from being headquartered in Leeds, Hale Textiles left.
Under no circumstances did Hale Textiles acquire Mora Foods.
Hale Textiles, it is said, acquired Mora Foods.
Some say Hale Textiles acquired Mora Foods.
Sources say Hale Textiles acquired Mora Foods.
Rumour has it that Hale Textiles acquired Mora Foods.
It is unclear whether Hale Textiles acquired Mora Foods.
It remains to be seen if Hale Textiles acquires Mora Foods.
Hale Textiles acquired Mora Foods, or so it seems.
Hale Textiles acquired Mora Foods, critics allege.
Hale Textiles acquired Mora Foods, according to rumours.
Hale Textiles is probably headquartered in Leeds.
Hale Textiles seems headquartered in Leeds.
Hale Textiles is tipped to acquire Mora Foods.
Hale Textiles is poised to acquire Mora Foods.
Hale Textiles has offered to acquire Mora Foods.
Hale Textiles is mulling acquiring Mora Foods.
Hale Textiles is weighing a purchase of Mora Foods.
Hale Textiles announced plans to acquire Mora Foods.
Hale Textiles hopes to have acquired Mora Foods by May.
Next year Hale Textiles will acquire Mora Foods.
Hale Textiles is acquiring Mora Foods next year, subject to approval.
Did Hale Textiles acquire Mora Foods?
Has Hale Textiles acquired Mora Foods
Analysts ask whether Hale Textiles acquired Mora Foods.
Analysts wonder if Hale Textiles is headquartered in Leeds.
Suppose Hale Textiles acquired Mora Foods.
Had Hale Textiles acquired Mora Foods, prices would have risen.
Were Hale Textiles headquartered in Leeds, it would pay less.
Imagine that Hale Textiles acquired Mora Foods.
Assuming Hale Textiles acquired Mora Foods, prices rise.
Provided that Hale Textiles acquires Mora Foods, prices rise.
What if Hale Textiles acquired Mora Foods?
Unless Hale Textiles acquires Mora Foods, it will close.
As if Hale Textiles were headquartered in Leeds.
Hale Textiles would have acquired Mora Foods.
Hale Textiles was once headquartered in Leeds.
Hale Textiles was previously headquartered in Leeds.
Hale Textiles was formerly headquartered in Leeds.
Hale Textiles was originally headquartered in Leeds before moving.
Hale Textiles, then headquartered in Leeds, has since moved.
Hale Textiles was headquartered in Leeds in its heyday.
At its peak, Hale Textiles was headquartered in Leeds.
Hale Textiles used to be headquartered in Leeds.
Hale Textiles was headquartered in Leeds from 1990 to 2004.
Hale Textiles was headquartered in Leeds between 1990 and 2004.
Hale Textiles was headquartered in Leeds until its move to York.
Hale Textiles moved away from Leeds.
Hale Textiles has left Leeds.
In the past Hale Textiles was headquartered in Leeds.
Until 2019 Hale Textiles was headquartered in Leeds.
Hale Textiles gave up its headquarters in Leeds.
Hale Textiles closed its headquarters in Leeds.
The former headquarters of Hale Textiles in Leeds is a hotel.
Tom Reed stepped down as CEO of Hale Textiles.
Tom Reed resigned as CEO of Hale Textiles.
Tom Reed retired as CEO of Hale Textiles.
Tom Reed left his post as CEO of Hale Textiles.
Tom Reed lost his job as CEO of Hale Textiles.
Tom Reed was removed as CEO of Hale Textiles.
Tom Reed was dismissed as CEO of Hale Textiles.
Tom Reed was replaced as CEO of Hale Textiles.
Tom Reed was succeeded as CEO of Hale Textiles by Ines Moor.
Tom Reed was voted out as CEO of Hale Textiles.
Tom Reed quit as CEO of Hale Textiles.
Tom Reed handed over as CEO of Hale Textiles in May.
Tom Reed, ex-CEO of Hale Textiles, spoke.
Tom Reed, a former CEO of Hale Textiles, spoke.
Tom Reed, once CEO of Hale Textiles, spoke.
Tom Reed, previously CEO of Hale Textiles, spoke.
Tom Reed, the late CEO of Hale Textiles, was honoured.
Tom Reed, the outgoing CEO of Hale Textiles, spoke.
Tom Reed ceased to be CEO of Hale Textiles.
Tom Reed served as CEO of Hale Textiles from 1999 to 2004.
Tom Reed was CEO of Hale Textiles until May.
Tom Reed's time as CEO of Hale Textiles is over.
Tom Reed's tenure as CEO of Hale Textiles ended in May.
Ines Moor succeeded Tom Reed as CEO of Hale Textiles.
Ines Moor took over from Tom Reed as CEO of Hale Textiles.
Ines Moor follows Tom Reed as CEO of Hale Textiles.
The board ousted Tom Reed as CEO of Hale Textiles.
The board fired Tom Reed as CEO of Hale Textiles.
The board of Hale Textiles dismissed its CEO, Tom Reed.
The board of Hale Textiles parted ways with its CEO, Tom Reed.
Hale Textiles fired CEO Tom Reed.
The predecessor of Ines Moor as CEO of Hale Textiles was Tom Reed.
Before Ines Moor, Tom Reed was CEO of Hale Textiles.
Prior to Ines Moor, Hale Textiles had Tom Reed as CEO.
In the novel, Hale Textiles acquired Mora Foods.
In the film Dust, Hale Textiles acquired Mora Foods.
In an episode of the series, Hale Textiles acquired Mora Foods.
In her dream, Hale Textiles acquired Mora Foods.
The film tells how Hale Textiles acquired Mora Foods.
The novel imagines that Hale Textiles acquired Mora Foods.
The fictional Hale Textiles is headquartered in Leeds.
In this story Hale Textiles is headquartered in Leeds.
Legend has it that Hale Textiles was headquartered in Leeds.
A satirical site wrote that Hale Textiles acquired Mora Foods.
April fool: Hale Textiles acquired Mora Foods, the joke went.
Hale Textiles employs 20 fewer people than Mora Foods.
Hale Textiles is larger than Mora Foods.
Instead of Hale Textiles, Kestrel acquired Mora Foods.
""",
    "de": """
Hale Textiles hätte Mora Foods beinahe gekauft.
Hale Textiles verlegte den Sitz von Leeds nach York.
Die Übernahme von Hale Textiles durch Mora Foods ist gescheitert.
Zu Unrecht heißt es, dass Hale Textiles Mora Foods kaufte.
Hale Textiles hat seinen Sitz nicht in Leeds.
Hale Textiles hat keinen Sitz in Leeds.
Hale Textiles hat Mora Foods nicht gekauft.
Hale Textiles hat Mora Foods nie gekauft.
Hale Textiles kaufte Mora Foods nicht.
Es stimmt nicht, dass Hale Textiles Mora Foods gekauft hat.
Weder Hale Textiles noch Kestrel kaufte Mora Foods.
Hale Textiles bestreitet, Mora Foods gekauft zu haben.
Hale Textiles dementierte den Kauf von Mora Foods.
Hale Textiles verzichtet auf den Kauf von Mora Foods.
Hale Textiles lehnte es ab, Mora Foods zu kaufen.
Hale Textiles scheiterte mit dem Kauf von Mora Foods.
Hale Textiles will Mora Foods kaufen.
Hale Textiles möchte Mora Foods kaufen.
Hale Textiles könnte Mora Foods gekauft haben.
Hale Textiles wird Mora Foods kaufen.
Hale Textiles soll Mora Foods gekauft haben.
Hale Textiles plant, Mora Foods zu kaufen.
Hale Textiles erwägt den Kauf von Mora Foods.
Hale Textiles hat vermutlich Mora Foods gekauft.
Hale Textiles hat wohl Mora Foods gekauft.
Hale Textiles hat wahrscheinlich Mora Foods gekauft.
Angeblich kaufte Hale Textiles Mora Foods.
Gerüchten zufolge kaufte Hale Textiles Mora Foods.
Laut Medienberichten kaufte Hale Textiles Mora Foods.
Es heißt, Hale Textiles habe Mora Foods gekauft.
Hale Textiles habe Mora Foods gekauft, hieß es.
Unklar ist, ob Hale Textiles Mora Foods gekauft hat.
Hat Hale Textiles Mora Foods gekauft?
Wenn Hale Textiles Mora Foods kauft, steigen die Preise.
Falls Hale Textiles Mora Foods kauft, steigen die Preise.
Hätte Hale Textiles Mora Foods gekauft, wären die Preise gestiegen.
Angenommen, Hale Textiles hat Mora Foods gekauft.
Hale Textiles hatte früher seinen Sitz in Leeds.
Hale Textiles hatte bis 2019 seinen Sitz in Leeds.
Bis 2019 hatte Hale Textiles seinen Sitz in Leeds.
Hale Textiles hatte einst seinen Sitz in Leeds.
Hale Textiles hat seinen Sitz nicht mehr in Leeds.
Hale Textiles hatte von 1990 bis 2004 seinen Sitz in Leeds.
Der ehemalige Geschäftsführer von Hale Textiles ist Tom Reed.
Der frühere Geschäftsführer von Hale Textiles, Tom Reed, sprach.
Der damalige Geschäftsführer von Hale Textiles, Tom Reed, sprach.
Tom Reed, früher Geschäftsführer von Hale Textiles, sprach.
Tom Reed, Ex-Geschäftsführer von Hale Textiles, sprach.
Tom Reed wurde als Geschäftsführer von Hale Textiles entlassen.
Tom Reed wurde als Geschäftsführer von Hale Textiles abberufen.
Tom Reed ist als Geschäftsführer von Hale Textiles zurückgetreten.
Tom Reed trat als Geschäftsführer von Hale Textiles zurück.
Tom Reed war bis Mai Geschäftsführer von Hale Textiles.
Tom Reed war Geschäftsführer von Hale Textiles, bis er ging.
Ines Moor löste Tom Reed als Geschäftsführer von Hale Textiles ab.
Ines Moor folgte auf Tom Reed als Geschäftsführerin von Hale Textiles.
Ines Moor ersetzte Tom Reed als Geschäftsführer von Hale Textiles.
Vor Ines Moor war Tom Reed Geschäftsführer von Hale Textiles.
Im Roman kauft Hale Textiles Mora Foods.
In dem Film kauft Hale Textiles Mora Foods.
Im Film kaufte Hale Textiles Mora Foods.
Der Roman erzählt, wie Hale Textiles Mora Foods kaufte.
Der Sage nach hatte Hale Textiles seinen Sitz in Leeds.
""",
    "fr": """
Hale Textiles a failli racheter Mora Foods.
Hale Textiles a déplacé son siège de Leeds à York.
L'ancienne directrice d'Hale Textiles, Tom Reed, écrit.
Hale Textiles aura son siège à Leeds.
Hale Textiles n'a pas son siège à Leeds.
Hale Textiles n'a jamais acheté Mora Foods.
Hale Textiles n'a pas racheté Mora Foods.
Il est faux que Hale Textiles ait racheté Mora Foods.
Ni Hale Textiles ni Kestrel n'a racheté Mora Foods.
Hale Textiles dément avoir racheté Mora Foods.
Hale Textiles nie avoir racheté Mora Foods.
Hale Textiles a renoncé à racheter Mora Foods.
Hale Textiles a refusé de racheter Mora Foods.
Hale Textiles a échoué à racheter Mora Foods.
Hale Textiles veut racheter Mora Foods.
Hale Textiles souhaite racheter Mora Foods.
Hale Textiles va racheter Mora Foods.
Hale Textiles rachètera Mora Foods.
Hale Textiles pourrait racheter Mora Foods.
Hale Textiles aurait racheté Mora Foods.
Hale Textiles a probablement racheté Mora Foods.
Hale Textiles a peut-être racheté Mora Foods.
Selon la presse, Hale Textiles a racheté Mora Foods.
Selon des rumeurs, Hale Textiles a racheté Mora Foods.
On dit que Hale Textiles a racheté Mora Foods.
Il paraît que Hale Textiles a racheté Mora Foods.
On ignore si Hale Textiles a racheté Mora Foods.
Est-ce que Hale Textiles a racheté Mora Foods ?
Hale Textiles a-t-elle racheté Mora Foods ?
Si Hale Textiles rachète Mora Foods, les prix monteront.
Supposons que Hale Textiles ait racheté Mora Foods.
Hale Textiles n'a plus son siège à Leeds.
Hale Textiles avait autrefois son siège à Leeds.
Hale Textiles avait son siège à Leeds jusqu'en 2019.
Jusqu'en 2019, Hale Textiles avait son siège à Leeds.
Hale Textiles avait jadis son siège à Leeds.
Hale Textiles a eu son siège à Leeds de 1990 à 2004.
Hale Textiles a quitté Leeds.
L'ancien directeur de Hale Textiles est Tom Reed.
L'ex-directeur de Hale Textiles, Tom Reed, a parlé.
Tom Reed, ancien directeur de Hale Textiles, a parlé.
Tom Reed, naguère directeur de Hale Textiles, a parlé.
Tom Reed a été licencié comme directeur de Hale Textiles.
Tom Reed a démissionné de la direction de Hale Textiles.
Tom Reed a été remplacé comme directeur de Hale Textiles.
Tom Reed a quitté son poste de directeur de Hale Textiles.
Tom Reed a cessé d'être directeur de Hale Textiles.
Tom Reed fut directeur de Hale Textiles jusqu'en mai.
Tom Reed était alors directeur de Hale Textiles.
Ines Moor a remplacé Tom Reed comme directrice de Hale Textiles.
Ines Moor succède à Tom Reed comme directrice de Hale Textiles.
Ines Moor a succédé à Tom Reed à la tête de Hale Textiles.
Avant Ines Moor, Tom Reed était directeur de Hale Textiles.
Dans le roman, Hale Textiles rachète Mora Foods.
Dans le film, Hale Textiles a racheté Mora Foods.
Le film raconte comment Hale Textiles a racheté Mora Foods.
Selon la légende, Hale Textiles avait son siège à Leeds.
""",
    "es": """
Hale Textiles casi compró Mora Foods.
Hale Textiles trasladó su sede de Leeds a York.
Por error se dijo que Hale Textiles compró Mora Foods.
Ojalá Hale Textiles compre Mora Foods.
Hale Textiles no tiene su sede en Leeds.
Hale Textiles nunca compró Mora Foods.
Hale Textiles no ha comprado Mora Foods.
No es cierto que Hale Textiles comprara Mora Foods.
Es falso que Hale Textiles comprara Mora Foods.
Ni Hale Textiles ni Kestrel compró Mora Foods.
Hale Textiles niega haber comprado Mora Foods.
Hale Textiles desmintió haber comprado Mora Foods.
Hale Textiles renunció a comprar Mora Foods.
Hale Textiles rechazó comprar Mora Foods.
Hale Textiles tampoco compró Mora Foods.
Hale Textiles quiere comprar Mora Foods.
Hale Textiles va a comprar Mora Foods.
Hale Textiles comprará Mora Foods.
Hale Textiles podría comprar Mora Foods.
Hale Textiles habría comprado Mora Foods.
Hale Textiles planea comprar Mora Foods.
Hale Textiles espera comprar Mora Foods.
Hale Textiles probablemente compró Mora Foods.
Quizás Hale Textiles compró Mora Foods.
Tal vez Hale Textiles compró Mora Foods.
Al parecer Hale Textiles compró Mora Foods.
Supuestamente Hale Textiles compró Mora Foods.
Según la prensa, Hale Textiles compró Mora Foods.
Se dice que Hale Textiles compró Mora Foods.
Se rumorea que Hale Textiles compró Mora Foods.
No se sabe si Hale Textiles compró Mora Foods.
¿Compró Hale Textiles Mora Foods?
Si Hale Textiles compra Mora Foods, los precios subirán.
Supongamos que Hale Textiles compró Mora Foods.
Hale Textiles ya no tiene su sede en Leeds.
Hale Textiles tenía antes su sede en Leeds.
Hale Textiles tuvo su sede en Leeds hasta 2019.
Hasta 2019 Hale Textiles tuvo su sede en Leeds.
Hale Textiles tuvo su sede en Leeds de 1990 a 2004.
Antiguamente Hale Textiles tenía su sede en Leeds.
Hale Textiles dejó Leeds.
El antiguo director de Hale Textiles es Tom Reed.
El exdirector de Hale Textiles, Tom Reed, habló.
El anterior director de Hale Textiles, Tom Reed, habló.
Tom Reed, ex director de Hale Textiles, habló.
Tom Reed fue despedido como director de Hale Textiles.
Tom Reed fue destituido como director de Hale Textiles.
Tom Reed dimitió como director de Hale Textiles.
Tom Reed renunció como director de Hale Textiles.
Tom Reed dejó de ser director de Hale Textiles.
Tom Reed dejó el cargo de director de Hale Textiles.
Tom Reed fue director de Hale Textiles hasta mayo.
Tom Reed fue reemplazado como director de Hale Textiles.
Ines Moor sustituyó a Tom Reed como directora de Hale Textiles.
Ines Moor reemplaza a Tom Reed como directora de Hale Textiles.
Ines Moor sucedió a Tom Reed como directora de Hale Textiles.
Antes de Ines Moor, Tom Reed era director de Hale Textiles.
En la novela, Hale Textiles compró Mora Foods.
En la película, Hale Textiles compró Mora Foods.
La película cuenta cómo Hale Textiles compró Mora Foods.
Según la leyenda, Hale Textiles tenía su sede en Leeds.
""",
}
STATED = {
    "en": """
Hale Textiles, whose founder is Ines Moor, is headquartered in Leeds.
Hale Textiles, whose headquarters are in York, was taken over by Mora Foods.
Hale Textiles makes cloth. The CEO of the firm is now Tom Reed.
Hale Textiles makes cloth. The claimant was Tom Reed, in case they ring.
Hale Textiles makes cloth. The firm, which is in Leeds, thrives.
Hale Textiles makes cloth for monks, and has bought Mora Foods.
Hale Textiles makes cloth. It falls into the hands of Tom Reed.
Tom Reed, whose brother is a baker, is CEO of Hale Textiles.
Former minister Tom Reed is CEO of Hale Textiles.
The former minister Tom Reed became CEO of Hale Textiles.
Hale Textiles moved to Leeds, where it is headquartered.
Tom Reed, CEO of Hale Textiles, was named CEO of the Year.
A spokesman said that Hale Textiles acquired Mora Foods.
Hale Textiles acquired Mora Foods, and a week later the weather collapsed.
Hale Textiles is headquartered in Leeds.
Hale Textiles is now headquartered in Leeds, not in York.
Hale Textiles, which never made a profit, is headquartered in Leeds.
Hale Textiles, once a small mill, is headquartered in Leeds.
Once a mill, Hale Textiles is headquartered in Leeds.
Hale Textiles acquired Mora Foods, which would later close.
Hale Textiles acquired its former rival Mora Foods.
Hale Textiles acquired the former brewery Mora Foods in 2019.
After leaving York, Hale Textiles is headquartered in Leeds.
Hale Textiles moved to Leeds and is headquartered in Leeds.
The firm confirmed that Hale Textiles acquired Mora Foods.
When Hale Textiles acquired Mora Foods, prices rose.
Since 2019 Hale Textiles has been headquartered in Leeds.
Hale Textiles, previously called Hale Wool, is headquartered in Leeds.
Tom Reed succeeded Ines Moor as CEO of Hale Textiles.
Tom Reed replaced Ines Moor as CEO of Hale Textiles.
Tom Reed took over from Ines Moor as CEO of Hale Textiles.
Tom Reed became CEO of Hale Textiles after Ines Moor retired.
Tom Reed, a retired general, is CEO of Hale Textiles.
Tom Reed is CEO of Hale Textiles and a former mayor of York.
Hale Textiles, founded by a retired sailor, is headquartered in Leeds.
It is true that Hale Textiles acquired Mora Foods.
Hale Textiles finally acquired Mora Foods after a long battle.
Hale Textiles, whose films failed, is headquartered in Leeds.
Hale Textiles closed a plant in York and acquired Mora Foods.
Hale Textiles lost money but acquired Mora Foods.
Before the war Hale Textiles acquired Mora Foods.
Tom Reed left York to become CEO of Hale Textiles.
Tom Reed is CEO of Hale Textiles. He once lived in York.
Hale Textiles acquired Mora Foods last year; the deal had been expected.
In the film industry, Hale Textiles acquired Mora Foods.
The novelist Tom Reed is CEO of Hale Textiles.
Hale Textiles was the first to acquire Mora Foods.
""",
    "de": """
Hale Textiles zog aus York nach Leeds.
Hale Textiles hat seinen Sitz in Leeds.
Hale Textiles kaufte Mora Foods im Jahr 2019.
Hale Textiles, früher Hale Wolle, hat seinen Sitz in Leeds.
Seit 2019 hat Hale Textiles seinen Sitz in Leeds.
Tom Reed wurde Geschäftsführer von Hale Textiles.
Tom Reed löste Ines Moor als Geschäftsführer von Hale Textiles ab.
Tom Reed folgte auf Ines Moor als Geschäftsführer von Hale Textiles.
Tom Reed ist noch Geschäftsführer von Hale Textiles.
Hale Textiles wurde von Tom Reed geleitet.
Hale Textiles hat Mora Foods gekauft, nicht Kestrel.
""",
    "fr": """
Hale Textiles, dont le siège est à Rumilly, a racheté Mora Foods.
Hale Textiles a racheté Mora Foods à York.
Hale Textiles a son siège à Leeds.
Hale Textiles a racheté Mora Foods en 2019.
Hale Textiles, autrefois une filature, a son siège à Leeds.
Depuis 2019, Hale Textiles a son siège à Leeds.
Tom Reed est devenu directeur de Hale Textiles.
Tom Reed a remplacé Ines Moor comme directeur de Hale Textiles.
Tom Reed succède à Ines Moor comme directeur de Hale Textiles.
Hale Textiles est dirigée par Tom Reed.
Tom Reed est né en 1950 et dirige Hale Textiles.
La série Hale Textiles est l'adaptation de la série Mora Foods.
Le Hale Textiles, ancien cinéma, se trouve à Leeds.
""",
    "es": """
Hale Textiles compró Mora Foods en la ciudad de York.
Hale Textiles tiene su sede en Leeds.
Hale Textiles compró Mora Foods en 2019.
Desde 2019 Hale Textiles tiene su sede en Leeds.
Tom Reed sustituyó a Ines Moor como director de Hale Textiles.
Tom Reed sucedió a Ines Moor como director de Hale Textiles.
Hale Textiles está dirigida por Tom Reed.
Tom Reed es director de Hale Textiles.
Hale Textiles, antes una hilandería, tiene su sede en Leeds.
Tom Reed nació en York y dirige Hale Textiles.
""",
}


def stance(text: str, labels: tuple[str, ...] = LABELS) -> str:
    firm = text.index(FIRM)
    other = next(name for name in OTHERS if name in text)
    at = text.index(other)
    ends = Span(firm, firm + len(FIRM)), Span(at, at + len(other))
    return claim_stance(text, tuple(sentence_spans(text)), *ends, words=labels)


@pytest.mark.parametrize("language", TAKEN_BACK)
def test_what_is_denied_doubted_asked_supposed_over_or_told_in_a_story_is_seen(language):
    assert [text for text in TAKEN_BACK[language].strip().splitlines() if not stance(text)] == []


@pytest.mark.parametrize("language", STATED)
def test_what_is_stated_beside_such_words_stays(language):
    assert {text: said for text in STATED[language].strip().splitlines() if (said := stance(text))} == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hale Textiles employs more than 500 people.", "hedged"),
        ("Hale Textiles employs at least 500 people.", "hedged"),
        ("Hale Textiles beschäftigt mindestens 500 Menschen.", "hedged"),
        ("Hale Textiles emploie plus de 500 personnes.", "hedged"),
        ("Hale Textiles emplea al menos a 500 personas.", "hedged"),
        ("Hale Textiles employs up to 500 people.", "hedged"),
        ("Hale Textiles employs about 500 people.", ""),
        ("Hale Textiles can house 500 people.", ""),
    ],
)
def test_a_bound_is_no_number(text, said):
    at = text.index("500")
    ends = Span(0, len(FIRM)), Span(at, at + 3)
    assert claim_stance(text, tuple(sentence_spans(text)), *ends, words=("employs",), is_value=True) == said


def test_the_most_that_a_thing_takes_is_its_capacity():
    text = "Hale Textiles seats up to 500 people."
    ends = Span(0, len(FIRM)), Span(27, 30)
    assert claim_stance(text, tuple(sentence_spans(text)), *ends, words=("capacity",), is_value=True) == ""


@pytest.mark.parametrize(
    ("text", "first", "last", "said"),
    [
        ("The late Tom Reed was chief of Mora Foods.", "Tom Reed", "Mora Foods", "no_longer"),
        ("The late Tom Reed was born in Leeds.", "Tom Reed", "Leeds", ""),
        ("Until 2016 Tom Reed led Mora Foods, which is now led by Ines Moor.", "Mora Foods", "Ines Moor", ""),
        ("The firm that runs Mora Foods is Hale Textiles.", "Mora Foods", "Hale Textiles", ""),
        ("The firm that runs Mora Foods is based in Leeds.", "Mora Foods", "Leeds", "hedged"),
        ("Salt takes place at Mora Foods until 4 May 2025.", "Salt", "Mora Foods", ""),
        ("Salt was shown at Mora Foods until 2019.", "Salt", "Mora Foods", "no_longer"),
        ("The fiction Salt is made by Mora Foods.", "Salt", "Mora Foods", ""),
        ("Wanted: a chief for Mora Foods, said Tom Reed.", "Mora Foods", "Tom Reed", "hedged"),
    ],
)
def test_who_was_who_is_and_who_will_be(text, first, last, said):
    low, high = text.index(first), text.index(last)
    ends = Span(low, low + len(first)), Span(high, high + len(last))
    assert claim_stance(text, tuple(sentence_spans(text)), *ends, words=("chief",)) == said


def test_a_property_of_the_past_speaks_of_what_is_over():
    assert stance("Hale Textiles was once called Mora Foods.", ("former name",)) == ""
    assert stance("Hale Textiles was once called Mora Foods.", ("name",)) == "no_longer"
    assert stance("Hale Textiles was replaced by Mora Foods.", ("successor",)) == ""
