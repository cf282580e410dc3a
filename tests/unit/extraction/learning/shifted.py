"""Sentences of another style than Text2KGBench's: several subjects and facts each, numbers with units, quoted values, dates
of every form. The examples to learn from come from patterns; the sentences to score were written by hand, with other
names and often other words. All names are invented."""

from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.learning.schema import Property, Schema

SCHEMA = Schema(
    properties=(
        Property("location", "location", "Place", "Place"),
        Property("runwayLength", "runwayLength", "Airport", datatype="double"),
        Property("elevation", "elevationAboveTheSeaLevel", "Airport", datatype="double"),
        Property("operator", "operatingOrganisation", "Airport", "Organisation"),
        Property("director", "director", "Film", "Person"),
        Property("runtime", "runtime", "Film", datatype="double"),
        Property("budget", "budget", "Film", datatype="double"),
        Property("releaseDate", "releaseDate", "Film", datatype="date"),
        Property("birthDate", "birthDate", "Person", datatype="date"),
        Property("birthPlace", "birthPlace", "Person", "Place"),
        Property("employer", "employer", "Person", "Organisation"),
        Property("motto", "motto", "University", datatype="string"),
        Property("students", "numberOfStudents", "University", datatype="integer"),
        Property("leader", "leaderName", "Place", "Person"),
    ),
    class_labels={name: name.lower() for name in ("Place", "Airport", "Organisation", "Film", "Person", "University")},
)

_PEOPLE = "Mara Lindqvist|Oduya Bekele|Tomas Riva|Ines Calder|Jun Watari|Petra Novotna|Samir Haddad|Lena Brandt".split(
    "|"
)
_CITIES = "Port Calder|Velmora|Osterby|San Ricardo|Lake Harrow|Nyborg Falls|Tessaro|Winterholm".split("|")
_AIRPORTS = "Velmora Airport|Osterby Regional Airport|Harrow Field|Tessaro International Airport".split("|")
_FILMS = "The Glass Harbor|Northbound|A Winter for Two|Paper Lanterns|Silent Orchard|Red Meridian".split("|")
_FIRMS = "Aerolinea Group|Norden Aviation Authority|Calder Instruments|Halden Foods|Riva Motors".split("|")
_SCHOOLS = "University of Velmora|Osterby Institute of Technology|Harrow College".split("|")
_MOTTOES = "Light and labour|Through work to wisdom|Knowledge serves all".split("|")
_DATES = (
    ("12 March 1956", "1956-03-12"),
    ("July 4, 1971", "1971-07-04"),
    ("1988-11-30", "1988-11-30"),
    ("the 2nd of May 1963", "1963-05-02"),
    ("September 21st, 1949", "1949-09-21"),
)
_NUMBERS = (("2,777", "2777.0"), ("1,350", "1350.0"), ("98", "98.0"), ("640", "640.0"), ("3,120", "3120.0"))

_PATTERNS = (
    ("{A} is located in {C} and its runway is {n} metres long.", ("A location C", "A runwayLength N")),
    ("{A} has a runway length of {n} and is operated by {O}.", ("A runwayLength N", "A operator O")),
    ("{O} operates {A}, which lies {n} metres above sea level.", ("A operator O", "A elevation N")),
    (
        "{A} in {C} is {n} metres above sea level. {P} is the leader of {C}.",
        ("A location C", "A elevation N", "C leader P"),
    ),
    ("{F} was directed by {P} and has a running time of {n} minutes.", ("F director P", "F runtime N")),
    ("{P} directed {F}, a film that was released on {d}.", ("F director P", "F releaseDate D")),
    ("With a budget of ${n}, {F} premiered on {d}.", ("F budget N", "F releaseDate D")),
    ("{P} was born on {d} in {C}.", ("P birthDate D", "P birthPlace C")),
    ("{P}, who was born in {C}, works for {O}.", ("P birthPlace C", "P employer O")),
    ("{P} is employed by {O}. {O} is based in {C}.", ("P employer O", "O location C")),
    ('{S} is in {C}; its motto is "{M}".', ("S location C", "S motto M")),
    ('The motto of {S} is "{M}" and it has {n} students.', ("S motto M", "S students N")),
    (
        "{S}, located in {C}, has {n} students and {C} is led by {P}.",
        ("S location C", "S students N", "C leader P"),
    ),
)


def _example(pattern: str, facts: tuple[str, ...], turn: int) -> Example:
    said, meant = _DATES[turn % len(_DATES)]
    shown, number = _NUMBERS[(turn * 3 + turn // 5) % len(_NUMBERS)]
    words = {
        "P": _PEOPLE[turn % len(_PEOPLE)],
        "C": _CITIES[(turn * 5 + 1) % len(_CITIES)],
        "A": _AIRPORTS[turn % len(_AIRPORTS)],
        "F": _FILMS[turn % len(_FILMS)],
        "O": _FIRMS[turn % len(_FIRMS)],
        "S": _SCHOOLS[turn % len(_SCHOOLS)],
        "M": _MOTTOES[(turn + turn // 3) % len(_MOTTOES)],
        "D": meant,
        "N": number,
    }
    text = pattern.format(**words, d=said, n=shown)
    triples = []
    for fact in facts:
        subject, name, value = fact.split()
        meaning = words[value].removesuffix(".0") if name == "students" else words[value]
        triples.append(Triple(words[subject], name, meaning))
    return Example(text, tuple(triples))


TRAIN = [_example(pattern, facts, turn * 7 + i) for turn in range(9) for i, (pattern, facts) in enumerate(_PATTERNS)]


def _held(text: str, *facts: str) -> Example:
    return Example(text, tuple(Triple(*(part.strip() for part in fact.split("|"))) for fact in facts))


HELD_OUT = [
    _held(
        "Kestrel Bay Airport is located in Marlow Point and has a runway that is 1,845 metres long.",
        "Kestrel Bay Airport|location|Marlow Point",
        "Kestrel Bay Airport|runwayLength|1845.0",
    ),
    _held(
        "The Civil Air Board operates Dunmore Airfield, which is 76 metres above sea level.",
        "Dunmore Airfield|operator|Civil Air Board",
        "Dunmore Airfield|elevation|76.0",
    ),
    _held(
        "Brightwater Airport, in Santa Lucia del Mar, has a runway length of 2,100.5 metres.",
        "Brightwater Airport|location|Santa Lucia del Mar",
        "Brightwater Airport|runwayLength|2100.5",
    ),
    _held(
        "Located in Ostrava Hills, Keller Field is operated by Skyline Partners.",
        "Keller Field|location|Ostrava Hills",
        "Keller Field|operator|Skyline Partners",
    ),
    _held(
        "Farrow Airport is 210 metres above sea level. Anna Feld is the leader of Farrow.",
        "Farrow Airport|elevation|210.0",
        "Farrow|leader|Anna Feld",
    ),
    _held("The runway of Sandholm Airport is 900 metres long.", "Sandholm Airport|runwayLength|900.0"),
    _held(
        "The Last Ferry was directed by Hugo Almeida and runs for 112 minutes.",
        "The Last Ferry|director|Hugo Almeida",
        "The Last Ferry|runtime|112.0",
    ),
    _held(
        "Greta Solberg directed Blue Static, which was released on 3 October 2008.",
        "Blue Static|director|Greta Solberg",
        "Blue Static|releaseDate|2008-10-03",
    ),
    _held(
        "Blue Static premiered on October 3, 2008 with a budget of $4,500,000.",
        "Blue Static|releaseDate|2008-10-03",
        "Blue Static|budget|4500000.0",
    ),
    _held("The budget of Cold Arithmetic was $12 million.", "Cold Arithmetic|budget|12000000.0"),
    _held("Cold Arithmetic has a running time of 87 minutes.", "Cold Arithmetic|runtime|87.0"),
    _held(
        "Directed by Yusuf Karim, The Salt Road was released on 2014-02-28.",
        "The Salt Road|director|Yusuf Karim",
        "The Salt Road|releaseDate|2014-02-28",
    ),
    _held(
        "Elena Marchetti was born in Novi Kamen on the 9th of August 1931.",
        "Elena Marchetti|birthPlace|Novi Kamen",
        "Elena Marchetti|birthDate|1931-08-09",
    ),
    _held(
        "Born on January 17, 1944, Colm Doyle works for Atlas Turbines.",
        "Colm Doyle|birthDate|1944-01-17",
        "Colm Doyle|employer|Atlas Turbines",
    ),
    _held(
        "Ruth Adeyemi is employed by Sunfield Dairies. Sunfield Dairies is based in Lower Hatton.",
        "Ruth Adeyemi|employer|Sunfield Dairies",
        "Sunfield Dairies|location|Lower Hatton",
    ),
    _held(
        "Viktor Hale, who was born in Grand Portage, is employed by Meridian Steel.",
        "Viktor Hale|birthPlace|Grand Portage",
        "Viktor Hale|employer|Meridian Steel",
    ),
    _held("Nadia Rahman was born on 22/06/1979.", "Nadia Rahman|birthDate|1979-06-22"),
    _held(
        'Eastgate University is in Port Ellery and its motto is "Dare to ask".',
        "Eastgate University|location|Port Ellery",
        "Eastgate University|motto|Dare to ask",
    ),
    _held(
        "The motto of the Lomond Academy is “Steady as stone”; it has 1,204 students.",
        "Lomond Academy|motto|Steady as stone",
        "Lomond Academy|students|1204",
    ),
    _held(
        "With 8,450 students, Eastgate University is located in Port Ellery, which is led by Marcus Thorne.",
        "Eastgate University|students|8450",
        "Eastgate University|location|Port Ellery",
        "Port Ellery|leader|Marcus Thorne",
    ),
    _held("Fenwick College has 350 students.", "Fenwick College|students|350"),
    _held(
        "Marcus Thorne is the leader of Port Ellery, where Ellery Airport is located.",
        "Port Ellery|leader|Marcus Thorne",
        "Ellery Airport|location|Port Ellery",
    ),
    _held(
        "Ilse Vandermeer was born on 5 May 1967 in Koppel and works for Tidewater Research.",
        "Ilse Vandermeer|birthDate|1967-05-05",
        "Ilse Vandermeer|birthPlace|Koppel",
        "Ilse Vandermeer|employer|Tidewater Research",
    ),
    _held(
        "Hollow Crown was released on February 11th, 1999. It was directed by Owen Pryce and has a running time of 141 minutes.",
        "Hollow Crown|releaseDate|1999-02-11",
        "Hollow Crown|director|Owen Pryce",
        "Hollow Crown|runtime|141.0",
    ),
    _held(
        "Stanmore Airport is operated by the Northern Ports Trust and lies 33 metres above sea level.",
        "Stanmore Airport|operator|Northern Ports Trust",
        "Stanmore Airport|elevation|33.0",
    ),
    _held(
        "Amir Soltani, the director of Ashes of Spring, was born in Qaravol.",
        "Ashes of Spring|director|Amir Soltani",
        "Amir Soltani|birthPlace|Qaravol",
    ),
    _held(
        'Whitcombe Polytechnic has the motto "Make, mend, measure" and is located in Whitcombe.',
        "Whitcombe Polytechnic|motto|Make, mend, measure",
        "Whitcombe Polytechnic|location|Whitcombe",
    ),
    _held(
        "The 94 minute film Tin Soldiers was directed by Beatriz Lobo.",
        "Tin Soldiers|runtime|94.0",
        "Tin Soldiers|director|Beatriz Lobo",
    ),
    _held(
        "Red Hollow is led by Dana Whitfield; Red Hollow Airport has a runway length of 1,512.",
        "Red Hollow|leader|Dana Whitfield",
        "Red Hollow Airport|runwayLength|1512.0",
    ),
    _held(
        "Gold Meridian Films is based in Castellane and employs Noor Jansen.",
        "Gold Meridian Films|location|Castellane",
        "Noor Jansen|employer|Gold Meridian Films",
    ),
]
