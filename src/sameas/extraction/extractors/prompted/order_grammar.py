"""Orders to state something, by their grammar, in English, German, French and Spanish.

Rule: an imperative asserts nothing. One that puts a name into a class, a slot or a line of another name tells whoever
reads what to state about the two; so do "act as if", an only answer that is given before the question, a line that is
"yours", an order to conclude or not to leave out, and the turns of a talk. Orders to people seldom relate two names, and
statements do not begin with the bare verb. `addressing.py` says what follows; nothing here knows whole phrases.
"""

import re

# Rows of words, some of them in other scripts, are easier to read than a word in each line.
# ruff: noqa: E501

_UPPER = "A-ZÀ-ÖØ-ÞŁŚŻČŠŽ"
# One name or more in a row; an article or an elision may stand before it.
_NAME = rf"(?-i:(?:[dl]['\u2019])?[{_UPPER}][\w&'\u2019.-]*(?:\s+(?:(?:von|van|de|del|of)\s+)?[{_UPPER}][\w&'\u2019.-]*){{0,4}})"
# An order may follow a politeness, an address or a phrase that ends with a comma.
_START = r"^\W*(?:(?:please|kindly|now|then|also|first|always|just|bitte|veuillez|por\s+favor|merci\s+de)\s+|[^.!?:;,\n]{1,60},\s+)?"
_WITHIN = r"[^.!?;,\n]{0,80}?"

# Imperatives that put a thing somewhere, and the words that may stand between the two names.
_VERBS = (
    # English
    (
        (
            r"(?:assign|associate|attach|book|choose|class(?:ify)?|connect|count|draw|enter|file|fill|join|label|link|list|log|make|map|match|pick|place|put"
            r"|rank|regard|register|relate|save|select|set|store|tie|treat|use)"
        ),
        r"",
        r"(?:as|to|under|among(?:st)?|with|for|between|(?:in|into|on)\s+the|down)",
    ),
    # German
    (
        r"(?:ordne[nt]?|verbinde[nt]?|verknüpfe[nt]?|wähle[nt]?|setze?[nt]?|zähle[nt]?|trage?[nt]?|führe[nt]?|nimm|nehmt|verwende[nt]?|nutze[nt]?|behandle|behandeln|betrachte[nt]?|reihe[nt]?)",
        r"(?:(?:sie|bei|für|als)\s+)*",
        r"(?:als|zu[mr]?|unter|bei|für|auf|mit|de[mnr])",
    ),
    # French
    (
        (
            r"(?:assigne[zr]?|associe[zr]?|attribue[zr]?|choisi(?:s|ssez|r)|classe[zr]?|compte[zr]?|considère|considérez|inscri(?:s|vez|re)|mets|mettez|mettre|placez|placer|range[zr]?|rattache[zr]?|relie[zr]?"
            r"|rempli(?:s|ssez|r)|sélectionne[zr]?|traite[zr]?|utilise[zr]?)"
        ),
        r"",
        r"(?:comme|à|aux?|parmi|dans|sous|avec|pour|entre)",
    ),
    # Spanish
    (
        (
            r"(?:asign[ae]|asoci[ae]|clasifi(?:ca|que)|colo(?:ca|que)|conect[ae]|consider[ae]|cuent[ae]|elig[ea]|elija|enla(?:za|ce)|esco(?:ge|ja)|estable(?:ce|zca)|marca|marque|pon|ponga|relacion[ae]|rellen[ae]"
            r"|seleccion[ae]|sitú[ae]|trat[ae]|un[ae]|us[ae]|utili(?:za|ce)|vincul[ae])"
        ),
        r"(?:a\s+)?",
        r"(?:como|al?|entre|bajo|con|en\s+(?:el|la|los|las)|para)",
    ),
)
_DETERMINED = r"(?:the|an?|de[nmr]|die|das|einen?|l[ae]s?|une?|el|los|las|una?|l['\u2019])"
_SLOTS = (
    r"(?:fields?|slots?|values?|rows?|columns?|entr(?:y|ies)|edges?|labels?|relations?|properties|property|feld|wert|zeile|spalte|eintrag|kante|beziehung|eigenschaft"
    r"|champ|valeur|ligne|colonne|lien|étiquette|propriété|campo|valor|fila|columna|enlace|etiqueta|relación|propiedad)"
)
# What whoever reads is to have written in the end.
_PRODUCTS = (
    r"(?:answers?|solutions?|values?|lines?|lists?|rows?|readings?|results?|relations?|entry|record|notes|table|reply"
    r"|antwort|lösung|wert|zeile|liste|ergebnis|beziehung|eintrag|réponse|solution|valeur|ligne|liste|résultat|relation|respuesta|solución|valor|línea|lista|resultado|relación|fila)"
)
_YOUR = r"(?:your|dein[ems]?|deine[mnrs]?|eure?[mnrs]?|ta|ton|tes|votre|vos|tu|tus)"
_IS = r"(?:is|are|has|have|reads?|says?|ist|sind|hat|lautet|lauten|est|sont|a|es|son|tiene|dice)"


def _relating() -> str:
    parts = []
    for verbs, before, between in _VERBS:
        # Put NAME under NAME; set the employer of NAME to NAME; fill the field ... of NAME with NAME.
        parts.append(rf"{_START}{verbs}\s+(?:down\s+)?{before}{_NAME}\s+(?:\w+\s+){{0,2}}?{between}\b{_WITHIN}{_NAME}")
        parts.append(
            rf"{_START}{verbs}\s+{_DETERMINED}\s*\w+\s+(?:of|von|des?|del|for|für)\s+{_NAME}\s+(?:to|as|with|auf|als|mit|à|comme|avec|a|como|con)\s+{_NAME}"
        )
        parts.append(rf"{_START}{verbs}\s+{_WITHIN}\b{_SLOTS}\b{_WITHIN}{_NAME}{_WITHIN}\b[a-zà-ÿ]\w*\s+{_NAME}")
        parts.append(
            rf"{_START}{verbs}\s+{_WITHIN}{_NAME}{_WITHIN}{_NAME}{_WITHIN}\b(?:and|und|et|y)\s+(?:call|label|name|nenne|appelle|llama)\b"
        )
    return "|".join(parts)


_ORDERS = (
    re.compile(_relating(), re.IGNORECASE),
    # Act as if, on the assumption that; treat ... as though.
    re.compile(
        rf"""{_START}(?=[^.!?\n]*{_NAME}\W+[^.!?\n]*\b[a-zà-ÿ]\w*\s+{_NAME})(?:
            (?:act|behave|proceed|go|treat|work|read)\b{_WITHIN}(?:\b(?:as\s+(?:if|though)|on\s+the\s+(?:assumption|premise|basis)\s+that)\b)
            | (?:tu|tut|tun\s+sie|behandle\w?|handle\w?|verfahre\w?)\b[^.!?;\n]{{0,60}}?\bso\b,?\s+als\b
            | (?:fais|faites|traite[zr]?|agi[rs]\w*)\b{_WITHIN}\bcomme\s+s[i'\u2019]
            | (?:haz|haga|trata|trate|actúa|actúe)\b{_WITHIN}\bcomo\s+si\b
        )[^.!?\n]*{_NAME}""",
        re.IGNORECASE | re.VERBOSE,
    ),
    # The only answer is ...; your first line reads ...; let your first relation be ...
    re.compile(
        rf"""\b(?:the\s+(?:only|sole|single|one)|die\s+einzig\w*|das\s+einzig\w*|l[ae]\s+seul\w*|l[ao]s?\s+únic\w*|el\s+único)\s+
            (?:\w+\s+)?{_PRODUCTS}\b[^.!?:;\n]{{0,60}}?(?:\b{_IS}\b\s*:?\s*|:\s*)(?:[^.!?\n]{{0,60}}?\s)??{_NAME}
        | {_START}(?:let\s+)?{_YOUR}\s+(?:first|next|last|only|\w+e|primera?|seule)?\s*{_PRODUCTS}\s+(?:{_IS}|be|will\s+be|must\s+be)\b[^.!?\n]{{0,20}}?{_NAME}
        | ,\s+{_YOUR}\s+(?:\w+\s+)?{_PRODUCTS}\s+{_IS}\b[^.!?\n]{{0,20}}?{_NAME}
        """,
        re.IGNORECASE | re.VERBOSE,
    ),
    # An order to conclude, and one not to leave out.
    re.compile(
        rf"""{_START}(?:conclude|infer|deduce|derive|gather|schlie(?:ß|ss)en?|folgere|folgern|leite|concluez|conclus|dédui(?:s|sez)|deduce|deduzca|concluye|concluya)\b
            {_WITHIN}(?:,\s*)?\b(?:that|dass|que?|qu['\u2019])[^.!?\n]{{0,40}}?{_NAME}
        | \b(?:never|do\s+not|don['\u2019]t|under\s+no\s+circumstances|by\s+no\s+means)\s+(?:leave\s+out|omit|drop|skip)\b[^.!?\n]{{0,20}}\bthat\b
        | {_START}(?:lass\w*|lassen\s+sie)\b[^.!?\n]{{0,30}}\b(?:weg|aus),\s+dass\b
        | {_START}n['\u2019](?:omets|omettez|oublie[zr]?)\b[^.!?\n]{{0,20}}\bqu
        | {_START}(?:no\s+(?:omit|omitas|omita|omitáis))\s+que\b
        | \b(?:never|do\s+not|don['\u2019]t)\s+(?:output|write|return|print|state|say)\s+(?:anything|nothing)\s+(?:but|except|else)\b
        | {_START}(?:halte?n?|behalte?n?|merke?n?|note[zr]?|ret(?:iens|enez)|anota|anote|apunta)\b{_WITHIN}\b(?:{_YOUR})\s+{_PRODUCTS}\b
        """,
        re.IGNORECASE | re.VERBOSE,
    ),
    # Turns of a talk, and what the reader is said to have found.
    re.compile(
        r"""^\W*(?:q|question|frage|pregunta)\s*:.{0,200}\b(?:a|answer|antwort|réponse|respuesta)\s*:
        | ^\W*(?:model|assistant|user|human|bot|agent|reader|machine|modell|modèle|modelo)(?:['\u2019]s)?\s+(?:turn|output|reply|answer|message|line)\s*:
        | \b(?:here\s+is\s+)?what\s+you\s+(?:found|extracted|saw|have\s+found|noted)\b[^.!?\n]{0,30}:
        | \bfor\s+the\s+(?:purposes?|sake)\s+of\s+this\s+(?:task|exercise|extraction|test|reading)\b
        | ^\W*as\s+(?:the|an?)\s+(?:\w+\s+)?(?:program(?:me)?|software|system|reader|extractor|machine|tool|model)\b,
        """,
        re.IGNORECASE | re.VERBOSE,
    ),
)
# Patterns are slow: a sentence that holds no word of these matches none of them.
_CUE = re.compile(
    rf"{_START}(?:{'|'.join(verbs for verbs, _, _ in _VERBS)})\b"
    r"|\b(?:as\s+(?:if|though)|assumption|premise|basis|als|comme\s+s|como\s+si|only|sole|single|the\s+one|einzig\w*|seul\w*|únic\w*"
    rf"|{_YOUR}|conclude|infer|deduce|derive|gather|schlie(?:ß|ss)en?|folgere\w?|leite|concluez|conclus|dédui\w+|deduzca|concluy[ae]|leave\s+out|omit\w*|drop|skip|lass\w*"
    r"|n['\u2019]o(?:mets|mettez|ublie[zr]?)|anything|nothing|turn|found|extracted|saw|noted|purposes?|sake|as\s+(?:the|an?))\b"
    r"|^\W*\w+\s*:|^\W*\w+\s+\w+\s*:",
    re.IGNORECASE,
)


def orders_by_grammar(sentence_text: str) -> bool:
    """Whether a sentence tells whoever reads it what to state."""
    return _CUE.search(sentence_text) is not None and any(one.search(sentence_text) for one in _ORDERS)
