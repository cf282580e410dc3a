"""What German, French and Spanish texts say where English labels say it: the words of relations, by their beginnings.

Rule: general language only, a word of one trade belongs into its ontology as a label; a word counts only in a text of
its language, so that `fond of` founds nothing.
"""

# ruff: noqa: SIM905 (word lists are the data here)

from types import MappingProxyType
from typing import Literal, TypeAlias

from sameas.ontology.focus import words_of
from sameas.ontology.word_families import root_of

Language: TypeAlias = Literal["de", "fr", "es", ""]

_COMMON: dict[str, frozenset[str]] = {
    "en": frozenset("the of and is was in by to has its it with for on are were from at his her that which".split()),
    "de": frozenset(
        "der die das und ist von den dem im mit ein eine einer wurde wird des zu auf für sich hat nicht aus bei".split()
    ),
    "fr": frozenset("le la les des est et du une un dans par au aux qui en sur il elle son sa ses a été d l".split()),
    "es": frozenset("el la los las es y del una un en por con su sus se que fue al lo tiene está desde".split()),
}
_ENOUGH = 2

# English words of labels: how German, French and Spanish words for them begin.
_WORDS = (
    ("founded founder established", "gründ gegründ begründ", "fond créat créé", "fund"),
    ("opened opening", "eröffn", "ouver ouvr inaugur", "abier abrió apert inaugur"),
    ("closed closing closure", "schließ schloss geschloss stillgeleg", "ferm clôtur", "cerr cierr clausur"),
    ("located location lies", "liegt gelegen befindet steht", "situé trouve sis", "situad ubicad encuentr"),
    ("headquarters office seat based", "hauptsitz firmensitz sitz zentrale", "siège", "sede"),
    ("capital", "hauptstadt", "capitale", "capital"),
    ("population inhabitants", "einwohner bevölker", "habitant popul", "habitant poblac"),
    ("area surface", "fläche", "superfici", "superfici"),
    ("length long", "länge lang", "long", "longitud largo larga"),
    ("height high elevation", "höhe hoch", "haut altitud", "altura alto alta altitud"),
    ("width wide", "breit", "larg", "anch"),
    ("depth deep", "tiefe tief", "profond", "profund"),
    ("weight weighs", "wiegt gewicht", "pèse poids", "pesa peso"),
    ("speed", "geschwindigkeit", "vitesse", "velocidad"),
    ("power output", "leistung", "puissanc", "potencia"),
    ("gauge", "spurweite", "écartement", "ancho"),
    ("capacity seats", "kapazität plätze sitzplätze", "capacité places", "capacidad aforo plazas"),
    ("price cost fee", "preis kostet kosten gebühr eintritt", "prix coût tarif", "precio cuesta coste tarifa"),
    ("free", "kostenlos gratis frei", "gratuit", "gratuit gratis"),
    ("revenue turnover sales", "umsatz", "chiffre recett", "factur ingreso ventas"),
    ("profit earnings", "gewinn", "bénéfice", "beneficio ganancia"),
    ("employees employs staff employed", "beschäftig mitarbeiter angestellt personal", "emploi employ salari effectif",
     "emple plantilla trabajador"),
    ("works employer job", "arbeitet arbeitgeber tätig", "travaill", "trabaj"),
    ("members member", "mitglied", "membre", "miembro soci"),
    ("belongs part", "gehört teil", "appartien partie", "pertenec parte"),
    ("director head headed leads led", "leit geleit direktor chef vorsteh führt geführt", "dirig direct",
     "dirig direct jefe jefa encabez"),
    ("manager managed manages", "geschäftsführ verwalt", "gér gest", "gestion gerent"),
    ("chief executive", "vorstandsvorsitz geschäftsführ vorstandschef firmenchef", "pdg patron", "consejer"),
    ("chair chairs chaired", "vorsitz", "préside présid", "preside presid"),
    ("president", "präsident", "présid", "presid"),
    ("mayor", "bürgermeister", "maire", "alcald"),
    ("minister", "minister", "ministre", "ministr"),
    ("owner owned owns", "eigentüm besitz inhaber gehört", "propriét possèd appartien détien", "propie pertenec dueñ"),
    ("shareholder stake", "aktionär anteil beteilig", "actionn part", "accionist particip"),
    ("operator operated operates runs", "betreib betrieb betrieben", "exploit gèr", "explot oper gestion"),
    ("developed developer develops", "entwickel", "développ", "desarroll"),
    ("maker made makes manufacturer produced produces", "hergestell herstell produzier stammt fertig",
     "fabri produi produc", "fabric produc elabor"),
    ("builder built constructed", "gebaut baut erbau errichte", "construi construct bâti", "constru"),
    ("architect designed designer", "architekt entworf entwarf entwurf", "archite conçu dessin",
     "arquite diseñ proyectad"),
    ("engineer", "ingenieur", "ingénieur", "ingenier"),
    ("author written wrote writer", "geschrieb schrieb autor verfass", "écri auteur rédig", "escri autor"),
    ("script screenplay", "drehbuch", "scénari", "guion"),
    ("directed director", "regie regisseur inszen", "réalis metteur", "dirig realiz"),
    ("composed composer music", "komponi musik", "compos musique", "compus compos música"),
    ("translated translator", "übersetz", "tradui traduc", "traduc tradujo traduj"),
    ("painted painter", "gemalt maler malte", "peint", "pint"),
    ("created creator work", "geschaffen schuf werk schöpf", "créé créat œuvre", "cread creó obra"),
    ("starring actor lead role cast", "hauptrolle spielt darsteller rolle schauspiel",
     "rôle joue acteur actrice interpr vedette", "papel protagon actor actriz interpret"),
    ("presented presenter host hosted", "moderier moderator präsentier", "présent animé animat", "present conduc"),
    ("broadcast airs aired channel shown", "sender gesendet ausgestrahl läuft gezeigt strahlt",
     "diffus chaîne antenne", "emit emisi emite canal"),
    ("season seasons", "staffel", "saison", "temporad"),
    ("episode episodes", "folge episod", "épisod", "episod capítulo"),
    ("viewers audience", "zuschauer", "téléspect", "espectador audiencia"),
    ("visitors", "besuch", "visit", "visit"),
    ("published publisher publishes", "veröffentlich verlag verleg erschien", "publi édit paru", "public edit"),
    ("released premiere", "erschien premiere uraufgeführ", "sorti parut première", "estren lanz"),
    ("genre", "genre gattung", "genre", "género"),
    ("language speaks", "sprache spricht sprich", "langue parle", "idioma lengua habla"),
    ("country origin", "land herkunft stammt", "pays origine", "país origen"),
    ("birth born", "geboren geburt", "né née naissa", "nac"),
    ("death died", "gestorben starb tod", "mort décéd", "muer muri fallec"),
    ("spouse married husband wife", "verheirat heirat ehe ehemann ehefrau gatte", "mari épou époux",
     "cas espos marido"),
    ("child son daughter", "sohn tochter kind", "fils fille enfant", "hij"),
    ("parent father mother", "vater mutter eltern", "père mère", "padre madre"),
    ("sibling brother sister", "bruder schwester", "frère sœur", "herman"),
    ("studied educated trained alumni graduate", "studier ausbildung absolv lernte gelernt",
     "étudi étude diplôm form", "estudi formó licenci gradu"),
    ("teaches teacher", "lehrt lehrer unterricht", "enseign profess", "enseñ profes"),
    ("subsidiary parent", "tochter tochtergesellschaft tochterfirma mutter", "filial", "filial"),
    ("branch", "filiale zweigstelle niederlassung", "agence succursal filial", "sucursal filial oficina"),
    ("acquired buys bought purchase", "übernahm übernomm kaufte gekauft erwarb erwirbt erworben",
     "rachet acquis acquér achet acqui", "compr adquir"),
    ("sold sells seller", "verkauf vertreib", "vend", "vend"),
    ("offers offered services", "bietet anbiet angebot", "offr propos", "ofrec"),
    ("supplier supplies supplied", "liefer belief zuliefer", "fourni approvis", "suministr provee proveed"),
    ("customer client", "kunde", "client", "client"),
    ("competitor rival", "konkurr wettbewerb", "concurren rival", "competidor rival"),
    ("partner", "partner", "parten", "soci"),
    ("sponsor sponsored funded", "sponsor geförder förder finanzier", "parrain mécén financ", "patrocin financ"),
    ("award prize won winner", "preis gewann gewonnen gewinn auszeich ausgezeich sieger",
     "prix gagn remport lauréat", "premio gan galard"),
    ("contains ingredient", "enthält zutat besteht", "contien ingrédient", "contien ingredient llev"),
    ("material made", "material besteht aus", "matériau matière", "material hech"),
    ("dates period", "jahrhundert stammt", "siècle date", "siglo data"),
    ("treats treatment used", "behandel gegen hilft wirkt", "traite trait soign", "trata tratam"),
    ("causes cause", "verursach auslös", "cause provoqu", "caus provoc"),
    ("symptom", "symptom", "symptôm", "síntom"),
    ("side effect", "nebenwirk", "effet", "efecto"),
    ("dose dosage", "dosis dosier", "dose posolog", "dosis"),
    ("judge", "richter", "juge", "juez magistrad"),
    ("court heard", "gericht verhand", "tribunal cour", "tribunal juzgad"),
    ("plaintiff claimant sued", "kläger klagt verklag", "demandeur plaign poursui", "demand"),
    ("defendant", "beklagt angeklag", "défend accus", "demandad acusad"),
    ("lawyer represented counsel attorney", "anwalt anwält vertrit vertret", "avocat représ", "abogad represent"),
    ("contract agreement party signed", "vertrag partei unterzeich unterschrieb",
     "contrat accord parti sign", "contrat acuerdo parte firm"),
    ("expires ends until valid maturity", "läuft ablauf endet fällig", "expir échéanc", "venc expir"),
    ("governed law", "unterliegt recht", "régi droit", "rige derech"),
    ("loan credit", "darlehen kredit", "prêt crédit", "préstamo crédito"),
    ("lender", "kreditgeber gewähr", "prêteur accord", "prestamista conced"),
    ("borrower", "kreditnehm", "emprunt", "prestatari"),
    ("interest rate", "zins", "intérêt taux", "interés tipo"),
    ("guarantor guarantees", "bürg", "garant caution", "aval"),
    ("secured collateral", "gesichert besicher sicherheit", "garanti nantiss", "garantiz garantía"),
    ("balance", "saldo guthaben kontostand", "solde", "saldo"),
    ("supervises supervised regulator", "beaufsicht aufsicht überwach", "surveill supervis contrôl", "supervis vigil"),
    ("beds", "betten", "lits", "camas"),
    ("department", "abteilung", "service départem", "servicio departam"),
    ("affiliated teaching", "angeschloss lehrkranken", "affili rattach", "afili adscrit"),
    ("patients treats", "patient", "patient", "pacient"),
    ("named after", "benannt namens", "nomm baptis", "nombr llam"),
    ("merged merger", "fusion verschm", "fusion", "fusion"),
    ("licence license", "lizenz", "licence", "licencia"),
    ("version", "version", "version", "versión"),
    ("requires depends needs", "benötig braucht voraus setzt", "requi dépend nécess", "requi depend necesit"),
    ("uses used using", "nutzt verwend benutz einsetz eingesetz", "utilis emploi", "us utiliz emple"),
    ("supports", "unterstütz", "prend support", "admite soport"),
    ("successor replaces", "nachfolg", "succ", "suces"),
    ("predecessor", "vorgäng", "prédéc", "predec"),
    ("station stop stops", "bahnhof halt haltestell", "gare station arrêt", "estaci parada"),
    ("line route", "linie strecke", "ligne", "línea"),
    ("terminus ends", "endet endstation endpunkt", "terminus termin", "termin cabecera"),
    ("electrified", "elektrifizier", "électrif", "electrif"),
    ("connects links", "verbind", "relie", "une conect enlaz"),
    ("railway railroad", "eisenbahn bahn", "chemin ferroviaire", "ferrocarril ferroviari"),
    ("tunnel", "tunnel", "tunnel", "túnel"),
    ("river flows", "fließt fluss mündet", "coule rivière fleuve jette", "río desemboc fluye"),
    ("crosses bridge", "überquer überspann brücke", "enjamb travers franchi pont", "cruza puente atravies"),
    ("twin town twinned", "partnerstadt partnerstädte", "jumel", "hermanad hermanami"),
    ("district borough", "bezirk stadtteil ortsteil", "quartier arrondis district", "barrio distrito"),
    ("collection holds displays exhibits", "sammlung zeigt ausgestell ausstell bewahrt",
     "conserv expos collection", "conserv expon exhib colecci alberga"),
    ("curated curator", "kurat", "commissair", "comisari"),
    ("on loan", "leihgabe geliehen verlieh", "prêté", "préstamo prestad"),
    ("acquired gift donated", "geschenk schenk gestift spende", "don offer légu", "don regal donad leg"),
    ("found discovered excavated", "gefunden entdeck ausgegrab fund", "découv trouvé exhum", "hall descub encontr"),
    ("takes place held", "findet statt", "lieu tien déroul", "celebr lugar tien"),
    ("industry sector", "branche bereich", "secteur domaine", "sector ramo"),
    ("speciality specializes", "spezialis fachgebiet", "spéciali", "especiali"),
    ("nickname called known", "genannt bekannt spitzname", "surnom appel connu", "apod conoci llamad"),
    ("former name", "früher hieß", "ancien", "antigu antes"),
    ("sport plays played", "spielt spieler", "joue joueur", "juega jugador"),
    ("team club", "verein mannschaft", "équipe club", "equipo club"),
    ("coach trained", "trainer trainier", "entraîn", "entren"),
    ("age years old", "jahre alt", "ans âge", "años edad"),
    ("date day", "datum", "date", "fecha"),
    ("address", "adresse anschrift", "adresse", "dirección"),
    ("phone telephone", "telefon", "téléphon", "teléfono"),
    ("species family", "art gattung familie", "espèce famille", "especie familia"),
    ("grows found lives habitat", "wächst lebt kommt", "pousse vit", "crece vive habita"),
)  # fmt: skip


def _beginnings(column: int) -> MappingProxyType[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for row in _WORDS:
        for beginning in row[column].split():
            found.setdefault(beginning, set()).update(root_of(word) for word in words_of(row[0]))
    return MappingProxyType({beginning: frozenset(roots) for beginning, roots in found.items()})


_BEGINNINGS = {"de": _beginnings(1), "fr": _beginnings(2), "es": _beginnings(3)}
_SHORTEST, _LONGEST = 2, 18


def language_of(text: str) -> Language:
    """The language whose small words a text has most of; empty for English and where nothing tells."""
    words = text.casefold().replace("'", " ").replace("\u2019", " ").split()
    counts = {name: sum(word.strip(".,;:()") in small for word in words) for name, small in _COMMON.items()}
    best = max(("de", "fr", "es"), key=lambda name: counts[name])
    return best if counts[best] >= _ENOUGH and counts[best] > counts["en"] else ""  # type: ignore[return-value]


def english_roots(word: str, language: Language) -> frozenset[str]:
    """The roots of English words that a word of a language stands for; none for English itself."""
    known = _BEGINNINGS.get(language)
    if known is None:
        return frozenset()
    for end in range(min(_LONGEST, len(word)), _SHORTEST - 1, -1):
        roots = known.get(word[:end])
        # A very short beginning is a word of its own.
        if roots is not None and (end >= 4 or end == len(word)):
            return roots
    return frozenset()
