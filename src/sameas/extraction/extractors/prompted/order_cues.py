"""Cues of an order to an assistant, in eighteen languages: words that are harmless alone, and not together.

Rule: an order tells somebody to put something out. One word seldom says so; what counts is that words of different
kinds stand in one sentence, in one language, and where they stand: who is spoken to, what is to be put out, a verb in the
imperative, instructions and their lifting, a colon or a "that" behind which the rest follows. `order_patterns.py` has
whole phrases, and knows ten of the languages better.
"""

# Rows of words, some of them in other scripts, are easier to read than a word in each line.
# ruff: noqa: E501, RUF001, SIM905

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal[
    "listener", "product", "rules", "void", "you", "say", "order", "that", "right", "must", "polite"
]
# fmt: off
# By language and kind; a star stands for any ending. `say` may be an imperative or not, and counts where an order begins;
# `order` is one in any case. `void` lifts `rules`; what is `right` is a reply that somebody put into the assistant's mouth.
_WORDS: dict[str, dict[Kind, str]] = {
    "en": {
        "listener": "ai llm llms assistant assistants chatbot chatbots bot bots chatgpt gpt annotator annotators extractor extractors parser parsers",
        "product": "output outputs reply response answer graph triple triples json extraction extractions annotation annotations ontology results following verbatim",
        "rules": "instruction instructions prompt prompts directive directives task guidelines",
        "void": "ignore disregard forget override overrides overrule bypass",
        "you": "you your yours yourself",
        "say": "output print reply respond answer return emit add include insert list extract report record write state say claim assume pretend create put register mark classify treat repeat link connect store confirm mention update copy cite associate annotate tag map save assert declare quote relate name summarise summarize extract",
        "that": "that",
        "polite": "please pls plz kindly",
        "right": "right correct expected gold perfect golden",
        "must": "must should shall",
    },
    "de": {
        "listener": "ki ai sprachmodell* assistent* chatbot* annotator* extraktor*",
        "product": "ausgabe antwort* graph graphen wissensgraph* wissensbasis tripel* json extraktion annotation* ergebnis*",
        "rules": "anweisung* instruktion* prompt* aufgabe* regeln vorgaben",
        "void": "ignoriere ignoriert ignorieren vergiss vergesst missachte",
        "you": "du dein* dich dir",
        "say": "schreibe schreib gib nenne nenn sage sag antworte melde notiere vermerke erfasse übernimm füge trage ergänze behaupte speichere verknüpfe merke stell aufnehmen ausgeben eintragen nimm auszugeben einzutragen aufzunehmen anzugeben",
        "that": "dass",
        "polite": "bitte",
        "right": "richtige richtigen korrekte korrekten erwartete",
        "must": "muss musst sollst soll müssen",
    },
    "fr": {
        "listener": "ia assistant assistants chatbot* annotateur* extracteur* llm",
        "product": "réponse* graphe sortie triplet* json extraction annotation* résultat* connaissances",
        "rules": "instruction instructions consigne consignes règles tâche prompt",
        "void": "ignore ignorez ignorer oublie oubliez oublier",
        "you": "tu toi ton ta tes vous votre vos",
        "say": "écris écrivez dis dites ajoute ajoutez ajouter indique indiquez cite citez mentionne mentionnez intègre intégrez inscris inscrivez inscrire note notez enregistre enregistrez fais faites réponds répondez affiche affichez relie reliez retiens",
        "that": "que comme",
        "polite": "prière merci veuillez",
        "right": "bonne correcte attendue attendu correct",
        "must": "dois devez doit doivent",
    },
    "es": {
        "listener": "ia asistente asistentes chatbot* anotador* extractor* llm",
        "product": "respuesta* grafo salida tripleta* json extracción anotación* resultado conocimiento*",
        "rules": "instrucción instrucciones reglas tarea prompt consigna*",
        "void": "ignora ignore ignorad olvida olvide",
        "you": "tú tu tus usted ustedes ti eres",
        "say": "escribe escriba di diga añade añada agrega agregue indica indique nombra nombre menciona mencione haz haga pon ponga registra registre responde responda guarda guarde vincula vincule",
        "that": "que como",
        "polite": "favor",
        "right": "correcta esperada correcto esperado",
        "must": "debes debe tienes tiene deben",
    },
    "it": {
        "listener": "ia ai assistente assistenti chatbot* annotator* estrattor* llm linguistico",
        "product": "risposta* grafo output tripl* json estrazione annotazion* conoscenza",
        "rules": "istruzion* regole compito prompt",
        "void": "ignora ignorate dimentica dimenticate",
        "you": "tu tuo tua tuoi tue sei",
        "say": "scrivi scriva aggiungi aggiunga riporta riporti indica indichi registra registri rispondi risponda metti inserisci menziona collega",
        "that": "che come",
        "polite": "favore prego",
        "right": "corretta giusta attesa corretto atteso",
        "must": "devi deve devono",
    },
    "pt": {
        "listener": "ia assistente assistentes chatbot* anotador* extrator* llm",
        "product": "resposta* grafo saída tripl* json extração anotaç* conhecimento",
        "rules": "instruç* regras tarefa prompt",
        "void": "ignore ignora esqueça esquece",
        "you": "você vocês teu tua tu seu",
        "say": "escreva escreve diga diz adicione adiciona acrescente informe informa indique indica registre registe responda responde mencione inclua ponha põe",
        "that": "que como",
        "polite": "favor",
        "right": "correta certa esperada correto esperado",
        "must": "deve deves tem devem",
    },
    "nl": {
        "listener": "ai taalmodel* assistent* chatbot* annotator* llm",
        "product": "antwoord* graaf uitvoer tripel* json extractie annotatie*",
        "rules": "instructie* regels taak prompt opdracht",
        "void": "negeer vergeet",
        "you": "je jij jou jouw uw",
        "say": "schrijf vermeld voeg zeg noem noteer zet registreer antwoord neem",
        "that": "dat",
        "polite": "graag alsjeblieft",
        "right": "juiste correcte verwachte",
        "must": "moet moeten",
    },
    "sv": {
        "listener": "ai språkmodell* assistent* modellen",
        "product": "grafen svaret svar utdata tripl* json",
        "rules": "instruktion* regler prompt uppgift",
        "void": "ignorera glöm",
        "you": "du din ditt dina dig",
        "order": "skriv svara ange",
        "say": "lägg nämn",
        "that": "att",
        "right": "rätta korrekta",
        "must": "måste ska",
    },
    "pl": {
        "listener": "ai asystent* modelu modeli modelowi",
        "product": "grafu odpowied* wynik* trójk* json",
        "rules": "instrukcj* polece* zasad* reguł* zadani*",
        "void": "zignoruj* ignoruj* zapomnij*",
        "you": "ty ciebie twój twoja twoje jesteś",
        "order": "napisz* dodaj* podaj* wpisz* zapisz* odpowiedz* wymień* uznaj* stwierdź* umieść*",
        "say": "podać napisać dodać uwzględnić zapisać wymienić",
        "that": "że",
        "polite": "proszę",
        "right": "poprawna prawidłowa właściwa",
        "must": "musi musisz powinna powinno powinien",
    },
    "ru": {
        "listener": "ии ассистент* помощник* языковая",
        "product": "ответ* граф графа вывод* тройк* json результат*",
        "rules": "инструкц* правил* указани* задани*",
        "void": "игнорируй* забудь* проигнорируй*",
        "you": "ты тебя тебе твой твоя твоё вы ваш ваша",
        "order": "напиши* укажи* добавь* выведи* скажи* запиши* ответь* включи* внеси*",
        "that": "что",
        "polite": "пожалуйста",
        "right": "правильный верный",
        "must": "должен должна должно обязан*",
    },
    "uk": {
        "listener": "ші асистент* помічник* мовна",
        "product": "відповід* граф графа вивід трійк* json",
        "rules": "інструкц* правил* вказівк*",
        "void": "ігноруй* забудь* проігноруй*",
        "you": "ти тебе тобі твій твоя твоє ви ваш ваша",
        "order": "напиши* вкажи* додай* виведи* скажи* запиши* включи*",
        "that": "що",
        "right": "правильна",
        "must": "повинен повинна повинно мусиш",
    },
    "tr": {
        "listener": "zekâ zeka yapay asistan* modellerine",
        "product": "grafiğe grafa graf yanıt* cevab* çıktı* json",
        "rules": "talimat* kural* komut*",
        "void": "yok unut görmezden",
        "you": "sen senin siz sizin",
        "order": "yaz yazın ekle ekleyin belirt söyle kaydet",
        "right": "doğru",
    },
    "ko": {
        "listener": "인공지능* 모델* 어시스턴트*",
        "product": "그래프* 답변* 출력* 응답*",
        "rules": "지시* 명령* 규칙*",
        "void": "무시*",
        "you": "당신*",
        "order": "출력하* 추가하* 작성하* 답하* 쓰세요 기록하* 포함하*",
        "right": "정답*",
    },
    "ar": {
        "listener": "النموذج المساعد الذكاء",
        "product": "الرسم الإجابة الرد المخرجات",
        "rules": "التعليمات القواعد الأوامر",
        "void": "تجاهل تجاهلي انس",
        "you": "أنت إجابتك",
        "order": "اكتب أضف أخرج اذكر سجل قل",
        "that": "أن",
        "right": "الصحيحة",
    },
    "hi": {
        "listener": "एआई मॉडल सहायक",
        "product": "ग्राफ़ ग्राफ उत्तर आउटपुट",
        "rules": "निर्देशों निर्देश नियमों",
        "void": "अनदेखा",
        "you": "तुम आप आपका आपके",
        "order": "लिखें लिखो जोड़ें जोड़ो बताएं कहो कहें",
        "that": "कि",
        "right": "सही",
    },
}
# Before an imperative, and no part of it.
_BEFORE = frozenset(
    "please pls plz kindly hey now then also and but so always just bitte auch und nun jetzt unbedingt et puis maintenant prière merci de d y ahora por favor e poi ora per favore en nu graag i proszę и пожалуйста do task".split()
)
# What letters ask for as well, and headings name.
_OF_LETTERS = frozenset("update return respond store copy name note write list send state record report claim map mark associate tag relate link connect nombre".split())
# Of a word that may be a verb or a noun, these say which.
_AFTER_NOUNS = frozenset("at of for from in on by was is were are has had rose fell grew".split())
# fmt: on
_WORD = re.compile(r"[^\W\d_]+(?:[\u0900-\u097f]+)*")
# After these an order may begin within a sentence.
_BREAKS = frozenset(":;|()[]{}<>*#`\"'\u2013\u2014\u2022!?.=-")
# A clause that begins with one of these, and a comma, may lead to an order.
_IF = frozenset("if falls wenn si se als om jeśli если якщо eğer 如果 إذا यदि".split())
_LEADS = _IF | frozenset(
    "to before when whatever as for don t do um bevor was pour avant quand para antes per prima voor als om voordat aby что".split()
)
_ARROW = re.compile(r"->|\u2192|\b\w+_\w+\(")
_COLON = re.compile(r":(?=\s|\Z)")
_FEWEST_BEFORE_COLON, _MOST_BEFORE_COLON = 2, 14
_THAT_FOLLOWS = 3
# What is right is a reply: this many words at most between the two.
_NEAR = 2
# An order that is announced has hardly more words than its verb.
_SHORT = 2


class _Cue(NamedTuple):
    kind: Kind
    place: int


Meaning: TypeAlias = tuple[str, Kind]


def _tables() -> tuple[Mapping[str, tuple[Meaning, ...]], Mapping[str, tuple[tuple[str, Meaning], ...]]]:
    """The languages and kinds of each word, and of each beginning of words by its first two letters."""
    words: dict[str, tuple[Meaning, ...]] = {}
    beginnings: dict[str, tuple[tuple[str, Meaning], ...]] = {}
    for language, kinds in _WORDS.items():
        for kind, row in kinds.items():
            for word in row.split():
                if word.endswith("*"):
                    start = word[:_FIRST]
                    beginnings[start] = (*beginnings.get(start, ()), (word[:-1], (language, kind)))
                else:
                    words[word] = (*words.get(word, ()), (language, kind))
    return MappingProxyType(words), MappingProxyType(beginnings)


_FIRST = 2
_MEANT, _MEANT_BY_BEGINNING = _tables()


def cues_order(sentence: str) -> tuple[bool, bool]:
    """Whether a sentence lifts instructions, so that what follows is an order too, and whether it is an order."""
    words = [(match[0].lower(), match.start()) for match in _WORD.finditer(sentence)]
    by_language = _by_language(words)
    if not by_language:
        return False, False
    colon = _colon_after(sentence, words)
    lifts = orders = False
    for cues in by_language.values():
        kinds = {cue.kind for cue in cues}
        if "void" in kinds and "rules" in kinds:
            lifts = True
        orders = orders or _is_order(sentence, words, cues, kinds, colon)
    return lifts, orders or lifts


def may_order(around: str) -> bool:
    """Whether the words around a fact may order it, by a single cue: whoever states a fact has hardly ever use for one.

    Of names, which may be anything, nothing may be left in the words.
    """
    words = [(match[0].lower(), match.start()) for match in _WORD.finditer(around)]
    for cues in _by_language(words).values():
        kinds = {cue.kind for cue in cues}
        says = {cue.place for cue in cues if cue.kind == "say"}
        what = any(cue.kind in ("you", "product", "rules") and cue.place not in says for cue in cues)
        if kinds & {"order", "polite"} or (says and what):
            return True
        if any(cue.kind == "say" and _tells(around, words, cue) for cue in cues):
            return True
        if any(cue.kind == "listener" and _is_called(around, words, cue) for cue in cues):
            return True
    return False


def _tells(sentence: str, words: list[tuple[str, int]], cue: _Cue) -> bool:
    """Whether an order begins with this word, and not a line of a form such as `Name: Ann Lee`."""
    word, at = words[cue.place]
    before = sentence[:at].rstrip()
    after = sentence[at + len(word) :].lstrip()
    if before.endswith(("|", ")")) or after[:1] == ":" or after.partition(" ")[0] in _AFTER_NOUNS:
        return False
    return before.endswith(",") or _begins(sentence, words, cue)


def _is_called(sentence: str, words: list[tuple[str, int]], cue: _Cue) -> bool:
    word, at = words[cue.place]
    return sentence[at + len(word) :].lstrip()[:1] in (",", ":", "-", "\u2013", "\uff1a")


def _by_language(words: list[tuple[str, int]]) -> dict[str, list[_Cue]]:
    found: dict[str, list[_Cue]] = {}
    for place, (word, _) in enumerate(words):
        for language, kind in _meanings(word):
            found.setdefault(language, []).append(_Cue(kind, place))
    return found


def _meanings(word: str) -> Sequence[Meaning]:
    exact = _MEANT.get(word, ())
    beginnings = _MEANT_BY_BEGINNING.get(word[:_FIRST])
    if beginnings is None:
        return exact
    return [*exact, *(meaning for beginning, meaning in beginnings if word.startswith(beginning))]


def _colon_after(sentence: str, words: list[tuple[str, int]]) -> int | None:
    """How many words stand before the colon that announces the rest."""
    colon = _COLON.search(sentence)
    if colon is None:
        return None
    before = sum(at < colon.start() for _, at in words)
    return before if _FEWEST_BEFORE_COLON <= before <= _MOST_BEFORE_COLON else None


def _is_order(
    sentence: str, words: list[tuple[str, int]], cues: list[_Cue], kinds: set[Kind], colon: int | None
) -> bool:
    announced = {cue.kind for cue in cues if colon is not None and cue.place < colon}
    if announced & {"rules", "listener"} or {"right", "product"} <= announced:
        return True
    if {"listener", "must"} <= kinds and {"say", "order"} & kinds:
        return True
    if {"you", "product", "must"} <= kinds:
        return True
    for one, other in pairwise(cues):
        if other.place - one.place <= _NEAR and (
            {one.kind, other.kind} == {"right", "product"}
            or (one.kind == "polite" and other.kind in ("say", "order") and words[other.place][0] not in _OF_LETTERS)
        ):
            return True
    tells = [cue.place for cue in cues if cue.kind == "order" or (cue.kind == "say" and _begins(sentence, words, cue))]
    if not tells:
        return False
    others = {cue.kind for cue in cues if cue.place not in tells}
    if others & {"listener", "rules", "product"} or _ARROW.search(sentence):
        return True
    plain = [tell for tell in tells if words[tell][0] not in _OF_LETTERS]
    if words[0][0] in _IF and any(cue.kind == "you" and cue.place < tell for cue in cues for tell in plain):
        return True
    if colon is not None and any(0 < colon - tell <= _SHORT for tell in plain):
        return True
    thats = [cue.place for cue in cues if cue.kind == "that"]
    return any(0 < that - tell <= _THAT_FOLLOWS for tell in tells for that in thats)


def _begins(sentence: str, words: list[tuple[str, int]], cue: _Cue) -> bool:
    """Whether an order may begin with this word: at the beginning, after a break, or after a clause that leads to it."""
    place = cue.place
    while place and words[place - 1][0] in _BEFORE:
        place -= 1
    before = sentence[: words[place][1]].rstrip()
    return not before or before[-1] in _BREAKS or (before[-1] == "," and words[0][0] in _LEADS)
