"""The words of orders to an assistant, in ten languages, as patterns: English, German, French, Spanish, Italian,
Portuguese, Dutch, Russian, Chinese and Japanese.

Rule: an order has a verb that puts something out, and says to whom or where: to a machine that reads, to "you", or into an
answer, a graph, a list of facts. Statements about people seldom have both. `addressing.py` says what follows.
"""

# Rows of words, some of them in other scripts, are easier to read than a word in each line.
# ruff: noqa: E501, RUF001, SIM905

import re

_ITEMS = (
    r"(?:entit(?:y|ies)|relations?|relationships?|facts?|triples?|statements?|json|(?:knowledge\s+)?graph|output|reply"
    r"|response|answer|extraction|results?)"
)
_PUT_OUT = (
    r"(?:output|print|reply|respond|answer|return|emit|add|include|insert|list|extract|report|record|generate|produce"
    r"|write|state|say|claim|assume|pretend|create|put|register|mark|classify|treat|repeat|translate)"
)
_ASSISTANT = r"(?:assistants?|ai|a\.i\.|llms?|language\s+models?|chat\s?bots?|chatgpt|gpt|claude|gemini|extractors?)"
_MUST = r"(?:must|should|shall|(?:ha[sv]e?|needs?|is|are|ought)\s+to|will|may\s+not|(?:is|are)\s+required\s+to)"

# What is said after one of these is said to the same listener.
TAKES_OVER = re.compile(
    rf"""
    \b(?:ignor\w*|disregard\w*|forget|override|overrule|bypass|vergiss|missachte|oublie[zr]?|olvida)\b
        [^.!?\n]{{0,60}}\b(?:instructions?|prompts?|rules?|directions?|guidelines?|commands?|above|previous|prior
        |anweisung\w*|vorherig\w*|instrucciones|istruzioni|consignes)\b
    | \b(?:do\s+not|don't|never|stop)\s+(?:follow|obey|heed|apply)\w*\b[^.!?\n]{{0,60}}\b(?:instructions?|prompts?|rules?|directions?|guidelines?)\b
    | \b{_ITEMS}\s+(?:that\s+|which\s+)?you\s+(?:will\s+|must\s+|should\s+|are\s+to\s+)?(?:give|return|output|produce|report|print|emit)\b
    | \b(?:overwrite|replace|drop)\b[^.!?\n]{{0,20}}\bwhat\s+you\s+(?:were\s+told|know|learned)\b
    | ^\W*(?-i:SYSTEM|ASSISTANT|DEVELOPER)\b\W | ^\W*(?:assistant|system|model)\s+(?:output|reply|response|turn)\b\W | ^\W*\w*prompt\s*[=:]
    | \bsystem\s+(?:prompt|message|override|instruction)s?\b | \bdeveloper\s+mode\b | \bjailbreak\w*\b
    | ^\W*(?:(?:the|these|here\s+are|your|my)\s+)*
        (?:new|updated|real|actual|hidden|secret|special|further|additional)\s+
        (?:instructions?|rules?|orders?|task)\s*:
    | \byou\s+are\s+(?:now\s+)?(?:an?\s+|the\s+|in\s+)?(?:\w+\s+){{0,2}}{_ASSISTANT}\b | \byou\s+are\s+now\b
    | \bfrom\s+now\s+on\b[^.!?\n]{{0,80}}\byou\b | \bab\s+(?:jetzt|sofort)\b[^.!?\n]{{0,60}}\b(?:du|dich|dir|dein\w*)\b
    | \bif\s+you\s+(?:can\s+|are\s+able\s+to\s+)?(?:read|see)(?:ing)?\s+this\b
    | \boverrides?\s+(?:everything|anything|all|any|the\s+rest)\b | ^\W*\[(?:system|assistant|developer)\]
    | ^\W*(?:tool|function)[_\s](?:results?|outputs?|responses?|calls?)\s*: | ^\W*(?:begin|start)\s+(?:of\s+)?(?:the\s+|your\s+)?(?:reply|answer|output|response|json)\b
    | \b(?:i\s+am|this\s+is)\s+your\s+(?:developer|creator|administrator|operator|owner)\b | \b(?:administrator|developer|operator)\s+speaking\b
    | \b(?:tu\s+es|vous\s+êtes)\s+(?:maintenant|désormais)\b | \bdu\s+bist\s+(?:jetzt|nun|ab)\b | \b(?:ahora\s+eres|eres\s+ahora|sei\s+ora|ora\s+sei|agora\s+você\s+é|você\s+agora\s+é)\b
    | \b(?:ты\s+теперь|теперь\s+ты|teraz\s+jesteś|jesteś\s+teraz)\b | \bje\s+bent\s+nu\b | \bdo\s+(?:what|as)\s+i\s+say\b | ^\W*(?:override|sudo)\b
    | \beverything\s+(?:above|before\s+this|so\s+far)\b | \b(?:real|actual|true)\s+(?:content|text|document|facts?)\s+(?:is|are|begins?|follows?|starts?)\b
    | ^\W*(?:sys|sistema|système|systeem|система)\s*(?::|>>) | \b(?:assistant|model|system|llm|ai)_\w+\s*[=:]
    | ^\W*(?:assistant|assistent\w*|asistente|assistente|asystent\w*|ассистент|modèle|modelo|modello|modell?|модель|chatbot|llm|ai|ki|ia)\s*,
    | \byou\s+obey\b | \b(?:act|behave)\s+as\s+(?:an?|the|if)\b | \bas\s+an?\s+(?:ai|a\.i\.|llm|language\s+model|chat\s?bot)\b
    | ^\W*(?:system|assistant|user|human|ai)\s*: | ["']?\brole["']?\s*:\s*["']?(?:system|assistant|user|developer|tool)\b
    | ^\W*(?:an?\s+|the\s+)?(?:example|sample|expected|correct|model)\s+(?:reply|answer|output|response|json|extraction)\s*:
    | \b(?:if|when|should)\s+(?:you(?:'re|\s+are)\s+(?:an?\s+)?|(?:an?|any)\s+){_ASSISTANT}\b
    | ^\W*(?:instructions?|notes?|messages?|reminders?|hints?|attention)\s+(?:to|for)\s+(?:(?:the|any|all|every)\s+)?
        {_ASSISTANT}\s*:
    | <\|[^|>]{{1,40}}\|> | \[/?INST\] | <</?SYS>> | ^\s*\#{{2,}}\s*(?:system|instructions?|response|assistant)\b
    | </?(?:system|assistant|instructions?|prompt)> | </s>
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
BEGINS_WITH_ORDER = re.compile(
    rf"""
    # Output that A is B. Please reply only with ... Do not list ...
    (?:^|[;:])\W*(?:(?:please|now|also|then|instead|first|finally|next|and|but|so|always|never|just|only|simply|kindly|important
        |attention|do\s+not|don't|you\s+must|{_ASSISTANT})\b[\s,:!-]*)*
        (?:(?:output|print|reply|respond|answer|return)\s+(?:\w+\s+){{0,3}}?with\b | {_PUT_OUT}\s+(?:\w+\s+){{0,3}}?(?:that\b|the\s+following|exactly|this\b|these\b|{_ITEMS}\b|["'\u201c{{\[]))
    """,
    re.IGNORECASE | re.VERBOSE,
)
ORDERS = re.compile(
    rf"""
    # You must add ... The assistant should include ...
    \byou\s+{_MUST}\b[^.!?\n]{{0,40}}\b{_PUT_OUT}\b
    | \b{_ASSISTANT}\s+(?:(?:that|which|who)\b[^.!?\n]{{0,40}}\s)?{_MUST}\b[^.!?\n]{{0,40}}\b{_PUT_OUT}\b
    # The user wants you to say ...; turn this into a fact; pretend the text says ...
    | \b(?:wants?|asks?|asked|expects?|needs?|would\s+like|told)\s+you\s+to\s+(?:\w+\s+)?(?:{_PUT_OUT}|link|connect|store|confirm|mention|annotate|associate)\b
    | \b(?:translate|turn|convert|make)\s+(?:this|these|that|it|the\s+following)\b[^.!?\n]{{0,20}}?\binto\s+(?:an?\s+)?{_ITEMS}\b
    | \b(?:pretend|imagine|suppose|assume)\b[^.!?\n]{{0,10}}\b(?:this|the)\s+(?:text|document|page)\s+(?:says|said|states|reads)\b
    | \b(?:answer|reply|respond)\s+accordingly\b
    | \b(?:make\s+sure|be\s+sure|remember|do\s+not\s+forget|don['\u2019]t\s+forget|so\s+(?:kind|good)\s+as)\s+to\s+(?:extract|include|add|output|report|record|mention|list|state|say|enter|insert|emit)\b
    | \b(?:il\s+faut|hay\s+que|bisogna)\s+(?:\w+\s+)?(?:extraire|ajouter|indiquer|mentionner|inclure|extraer|añadir|incluir|indicar|mencionar|aggiungere|estrarre|includere|indicare)\b
    | \b(?:could|can|would|will)\s+you\b[^.!?\n]{{0,20}}\b(?:{_PUT_OUT}|note|confirm|mention)\b[^.!?\n]{{0,12}}\bthat\b
    | ^\W*(?:let['\u2019]?s|let\s+us)\s+(?:play|pretend|imagine|assume|say|suppose)\b | \bstell(?:en\s+sie\s+sich|t?\s+(?:dir|euch))\s+vor\b
    | \btreat\b[^.!?\n]{{0,80}}\bas\s+(?:true|an?\s+(?:established\s+)?fact|established|given)\b
    | \b(?:triples?|knowledge\s+graph|annotations?|json)\b[^.!?\n]{{0,20}}\b(?:contain|include|ha[sv]e?|show|state|mention)s?\b
    # in whatever you produce; you will be scored on ...; tell the reader, in JSON, ...; must appear in the graph
    | \bwhatever\s+(?:else\s+)?you\s+(?:produce|output|return|write|find|extract|emit)\b | \byou\s+will\s+be\s+(?:scored|graded|rated|judged|evaluated)\b
    | \bin\s+(?:valid\s+|one\s+)?json\b | \b(?:must|should|shall|has\s+to|have\s+to)\s+(?:appear|be|show\s+up|go)\s+(?:\w+\s+)?(?:in|into)\s+(?:the|your)\s+
        (?:\w+\s+)?{_ITEMS}\b
    # Anything that summarizes this must mention that ...; but say that ...
    | (?<!\bi\s)(?<!\bwe\s)\b(?:must|should|shall|ha(?:s|ve)\s+to|needs?\s+to|ought\s+to)\s+(?:\w+\s+)?
        (?:mention|say|state|output|report|include|list|contain|record|conclude|add)\s+that\b
    | \b(?:but|and|then|instead|just|simply|always)\s+(?:say|write|output|reply|answer|report|state|claim)\s+that\b
    # (include this in the graph); the extraction is wrong unless ...; the result that you give
    | \b(?:include|add|put|list|record|insert|write|note|mention|report)\s+(?:this|that|it|them|these)\s+
        (?:in|into|to|as|among|under)\s+(?:(?:the|your|an?|all)\s+)?(?:\w+\s+)?{_ITEMS}\b
    | \b(?:the|this|your|any)\s+(?:extraction|knowledge\s+graph|graph|triples?|json|output|answer|reply)\s+(?:is|are|will\s+be)\s+
        (?:wrong|incomplete|incorrect|invalid|correct|complete|valid|not\s+\w+)\s+(?:unless|if|when|without|until|only)\b
    | \bwould\s+be\s+\w+\s+if\s+(?:the|your|this)\s+{_ITEMS}\b
    | \b(?:an?|every|any)\s+(?:correct|complete|valid|good|full)\s+(?:answer|output|result|response|extraction|triple|graph)\s
        (?:is|mentions?|contains?|includes?|says?|states?|lists?|names?|must|shows?|reads?)\b
    | ^[^.!?\n:]{{0,30}}\bfor\s+(?:the|this|your)\s+(?:extraction|knowledge\s+graph|triples?)\s*:
    # ... in your reply; your graph
    | \byour\s+(?:next\s+|final\s+|only\s+)?(?:reply|response|answer|output|json|extraction|knowledge\s+graph|graph|memory
        |instructions|system\s+prompt|task\s+is)\b
    # add the fact ..., include these relations
    | \b{_PUT_OUT}\s+(?:(?:this|these|those|the|following|one|a|an|that|only|all|also|as)\s+){{0,3}}
        (?:entit(?:y|ies)|relations?|relationships?|facts?|triples?)\b
    # while extracting this text
    | \bwhen(?:ever)?\s+(?:you\s+)?(?:extract|summari[sz]|process|pars|analy[sz])\w*\b[^.!?\n]{{0,30}}
        \b(?:text|document|page)\b
    | \b(?:to|for)\s+(?:any|the|all|every)\s+{_ASSISTANT}\b[^.!?\n]{{0,30}}\b(?:read|process|pars|extract|summari)\w*
    # A reply in the words of the form.
    | ["']?\b(?:entities|relations|supported)["']?\s*:\s*\[
    | ["'](?:subject|predicate|property|object|relation)["']\s*:\s*["'\d]
    """,
    re.IGNORECASE | re.VERBOSE,
)
# The same thoughts in other words and languages.
_LISTENERS = (
    r"(?:a\.?i\.?|k\.?i\.?|i\.?a\.?|llms?|(?:ki|ai|ia)-\w+|assistant\w*|assistent\w*|asistent\w*|chat\s?bots?|sprachmodell\w*"
    r"|(?:language\s+|sprach)?models?|modèles?(?:\s+de\s+langage)?|modelos?(?:\s+de\s+lenguaje)?|modell\w*"
    r"|chatgpt|gpt|claude|gemini|estrattor\w*|extrator\w*|taalmodel\w*|ии|ассистент\w*|помощник\w*|модел\w*|бот(?:ы|ов|ам)?"
    r"|extra[ck]t(?:or|eur)\w*|parsers?|crawlers?|scrapers?|bots?|machines?|maschinen?|máquinas?)"
)
_PLACES = (
    r"(?:output|reply|response|answer|results?|extraction|json|(?:knowledge\s+)?(?:graph|base)s?|triples?|facts?|relations?|entit(?:y|ies)"
    r"|ausgabe\w*|antwort\w*|ergebnis\w*|graph(?:en)?|tripel\w*|fakt\w*|beziehung\w*|relation\w*|entität\w*|extraktion\w*"
    r"|sortie|réponse|résultats?|graphe|triplets?|faits?|entités?"
    r"|salida|respuesta|resultados?|grafo|tripletas?|hechos?|relaci[óo]n\w*|entidad\w*|extracci[óo]n"
    r"|risposta|risultat\w*|tripl[ae]|fatt[oi]|relazion\w*|entità|estrazione|resposta|saída|triplos?|triplas?|fa[ct]?tos?|relaç\w*"
    r"|uitvoer|antwoord\w*|resulta\w*|gra(?:af|fen)|feit(?:en)?|relaties?|entiteit\w*|extractie"
    r"|вывод\w*|ответ\w*|результат\w*|граф\w*|тройк\w*|факт\w*|связ\w*|отношени\w*|сущност\w*)"
)
_OBLIGES = (
    r"(?:must|should|shall|ha[sv]e?\s+to|needs?\s+to|(?:is|are)\s+(?:asked|required|requested|to)\b"
    r"|muss|müss(?:en|t)|soll\w*|ha(?:t|ben|bt)\b[^.!?\n]{0,90}\bzu|doi[st]|dev(?:ez|ront|ra)|il\s+faut|deb(?:e|es|en|erá\w*)|tien(?:e|es|en)\s+que"
    r"|dev(?:e|i|ono|em)|dovete|tem\s+(?:de|que)|moet(?:en)?|долж\w+|обязан\w*|следует)"
)
# Imperatives, and infinitives after "merci de", "no olvides" and their like.
_IMPERATIVES = (
    r"(?:make\s+sure|ensure|remember\s+to|be\s+sure\s+to|see\s+to\s+it|let\s+the(?=\s+(?:extraction|output|graph|answer|reply|result))|kindly|capture|register|tag|note\s+down|include|insert|add|output|report|extract"
    r"|record|reply|treat"
    r"|gib|gebt|geben\s+sie|füge?|fügen\s+sie|schreibe?|schreiben\s+sie|antworte\w*|nenne\w*|liste|behaupte\w*|erzeuge\w*|ergänze\w*|trage?|melde|vermerke|notiere"
    r"|erfasse\w*|nimm|nehmen\s+sie|extrahiere\w*|übernimm|führe"
    r"|affiche[rz]?|réponds|répond(?:ez|re)|ajoute[rz]?|écri[st]|écri(?:vez|re)|indique[rz]?|retourne[rz]?|renvo\w+|inclus|inclu(?:ez|re)|extrais|extra(?:yez|ire)"
    r"|dites|dis|génère|génér(?:ez|er)|note[rz]|déclare[rz]?|enregistre[rz]?|considère|considér(?:ez|er)|mentionne[rz]?|produis|produi(?:sez|re)"
    r"|escrib(?:a|e|ir)|respond(?:a|e|er)|añad(?:a|e|ir)|agreg(?:ue|a|ar)|devuelv(?:a|e)|devolver|imprim(?:a|e|ir)|inclu(?:ya|ye|ir)|extra(?:iga|e|er)|gener(?:e|a|ar)"
    r"|muestr(?:e|a)|di(?=\s+que)|da(?=\s+por)|declar(?:e|a|ar)|registr(?:e|a|ar)|indi(?:que|ca|car)|consider(?:e|a|ar)|mencion(?:e|a|ar)"
    r"|aggiung(?:i|a|ete)|scriv(?:i|a|ete)|rispond(?:i|a|ete)|inclu(?:di|da|dete)|indichi|estra(?:i|gga|ete)|registri|dichiar[ai]|elenc(?:a|hi)|restituisc[ia]"
    r"|produc[ia]|stampa|inseris(?:ci|ca)|adicion[ea]|acrescent[ea]|escreva|inclua|registe|diga|liste|devolva|insira|produza"
    r"|voeg|vermeld|zet|plaats|schrijf|antwoord|neem|noem|geef|registreer|meld|extraheer|beschouw"
    r"|добавь(?:те)?|выведи(?:те)?|напиши(?:те)?|ответь(?:те)?|включи(?:те)?|укажи(?:те)?|извлеки(?:те)?|запиши(?:те)?|сообщи(?:те)?|внеси(?:те)?|верни(?:те)?|перечисли(?:те)?|считай(?:те)?|заяви(?:те)?)"
)
_POLITELY = (
    r"(?:(?:please|kindly|bitte|nun|jetzt|auch|also|and|then|veuillez|s'il\s+(?:vous|te)\s+plaît|maintenant|merci\s+de|n'oublie[zr]?\s+pas\s+d[e']|por\s+favor|ahora|per\s+favore|alsjeblieft|пожалуйста"
    r"|no\s+olvid(?:e|es)|whatever\s+else\s+you\s+find)[\s,:]*)"
)
_SAYS_WHAT = r"""(?:\b(?:that|dass|que|qu|che|dat|что|aus|ein|auf|hinzu|following|folgende\w*|siguientes?|suivante?s?|genau|exact\w*)\b|(?<!\w)["'{\[„«]|:)"""
BEGINS_WITH_ORDER_ELSEWHERE = re.compile(
    rf"""
    # Trage in den Graphen ein ...; N'oublie pas d'inclure dans le JSON ...; 2. Output: ...
    ^[\W\d_]*(?:[a-z]\)\s*)?(?:{_LISTENERS}\s*[,:]\s*)?{_POLITELY}*{_IMPERATIVES}\b[^.!?\n]{{0,90}}?
        (?:\b{_PLACES}\b|{_SAYS_WHAT})
    | ^[\W\d_]*(?:debes|tienes\s+que|devi|dovete|deves|je\s+moet|ты\s+должен|вы\s+должны)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
ORDERS_ELSEWHERE = re.compile(
    rf"""
    # the model must ..., any AI that reads this has to ...
    \b{_LISTENERS}\b[^.!?\n]{{0,50}}?\b{_OBLIGES}\b[^.!?\n]{{0,120}}
    # you must put into the answer ...; debes indicar ...
    | \b(?:you|your|du|ihr|sie|tu|vous|usted(?:es)?|você|vocês|je|jij|ты|вы)\s+{_OBLIGES}\b[^.!?\n]{{0,60}}?\b(?:{_PLACES}|{_IMPERATIVES}|ausgeben|angeben|nennen|erfassen)\b
    | \bihr\s+habt\b[^.!?\n]{{0,120}}\b{_PLACES}\b
    | ^[\W\d_]*(?:tu\s+dois|du\s+sollst|du\s+musst)\b
    # your triples; deine Ausgabe; ta sortie; tu respuesta
    | \b(?:your|dein\w*|eure\w*|ton|ta|tes|votre|vos|tus?|tuo|tuoi|tue|vostr[oaie]|tua|teu|jouw|uw|тво\w+|ваш\w*)\s+
        (?:\w+\s+){{0,2}}?{_PLACES}\b
    | \bin\s+je\s+{_PLACES}\b
    # Metti nel grafo: ...; Responde apenas: ...; グラフに ... 入れてください
    | ^[^.!?\n:]{{0,60}}\b(?:gra(?:ph|f)(?:en|o|e|u)?|graaf|граф\w*|triples?|tripl[ae]s?|tripel\w*|тройк\w*|json|extra(?:ction|ktion|zione|cción)|estrazione)\b[^.!?\n:]{{0,30}}:
    | ^[\W\d_]*(?:answer|reply|respond|antworte|antwoord|réponds|répondez|responde|responda|rispondi|отвечай(?:те)?|ответь(?:те)?)\s+
        (?:only|just|nur|alleen|slechts|seulement|uniquement|sólo|solo|soltanto|apenas|somente|только)\b
    | ^[\W\d_]*(?:metti|mettete|põe|ponha|pon|ponga|mets|mettez|zet|setze?)\b[^.!?\n]{{0,40}}\b{_PLACES}\b
    | \b(?:ai|ki|ia|ии)-?\s?(?:syst[eè]m\w*|модел\w*|систем\w*|modell\w*|assistent\w*)\b[^.!?\n]{{0,20}}(?::|\b(?:registr\w+|record|note|list|treat|extract|erfassen|führen|noteren)\b)
    | \b(?:ia|ai|ki)\s+(?:che|que|die|qui)\s+\w+[^.!?\n]{{0,80}}\b(?:che|que|dass|dat)\b
    # Tens de dizer que ...; ma scrivi che ...
    | \b(?:tens|tem|têm|dev(?:e[ms]?|i|ete)|dovete|doi[st]|devez|debe[sn]?|tien(?:e|es|en)\s+que)\s+(?:de\s+|que\s+)?
        (?:dizer|escrever|incluir|indicar|mencionar|registar|responder|dire|scrivere|includere|indicare|écrire|inclure|indiquer|mentionner|decir|escribir)
        \s+(?:che|que|qu)\b
    | (?:^|[,;:(]|\b(?:ma|e|poi|mas|maar|en|und|aber|sondern|mais|et|pero|sino|y|но|а)\s)\s*
        (?:scrivi|rispondi|escreve|escreva|responde|schrijf|antwoord|schreib\w*|sag\w*|melde|antworte|écri(?:s|vez)|dis|dites|réponds|escribe|напиши(?:те)?|скажи(?:те)?|ответь(?:те)?)
        ,?\s+(?:che|que|qu|dat|dass|что)\b
    # whoever parses this page
    | \b(?:whoever|anyone\s+who|who(?:soe)?ver|wer|quiconque|quien|qui)\b[^.!?\n]{{0,20}}\b
        (?:(?:pars|read|process|extract|summari)\w*\s+th(?:is|ese)|diese[nrs]?\s+\w+\s+(?:auswert|lies|liest|verarbeit)\w*|lit\s+ce|lea\s+est\w+)
    # for the purposes of this extraction; the correct answer is
    | \b(?:purposes?|sake)\s+of\s+(?:this|the)\s+(?:extraction|output|answer|graph|task)\b
    | \bthe\s+(?:correct|expected|right|only|desired|required)\s+(?:answer|output|result|response|extraction|triple)s?\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Who is called by name, or in a comment, is spoken to until the paragraph ends.
CALLS = re.compile(
    rf"""
    ^[\W\d_]*(?:an|für|à|au|aux|pour|para|per|aan|voor|для|to|for|dear|hey|liebe[rs]?|cher|querid[oa]|car[oa])\b[^.!?\n:]{{0,40}}?\b{_LISTENERS}\s*[,:]
    | ^[\W\d_]*(?:\w+\s+)?(?:hinweis\w*|anweisung\w*|notiz|nachricht|texts?|memos?|notes?|messages?|consignes?|nota|mensaje|aviso|instru(?:cci[óo]n|ction)\w*
        |messaggio|avviso|istruzion\w*|mensagem|instruç\w*|bericht|instructies?|сообщени\w*|заметк\w*|инструкци\w*|указани\w*)\s+
        (?:an|für|à|a|au|aux|pour|para|per|all?|o|ai|agli|aan|voor|для|to|for)\b[^.!?\n:]{{0,20}}\b{_LISTENERS}\s*:
    # AI assistants reading this page: ...; Assistente, scrivi ...
    | ^[\W\d_]*{_LISTENERS}\b[^.!?\n:]{{0,20}}\b(?:reading|parsing|processing|indexing|crawling|(?:who|that|which)\s+(?:read|parse|process|index)\w*)\b[^.!?\n:]{{0,30}}:
    # For automated readers: ...; Языковым моделям: ...
    | ^[^.!?\n:]{{0,30}}\b(?:language\s+models?|llms?|chat\s?bots?|a\.?i\.?|taalmodel\w*|sprachmodell\w*|modelos?\s+de\s+(?:linguagem|lenguaje)
        |modelli?\s+linguistic\w*|modèles?\s+de\s+langage|sistem\w+\s+(?:de|di)\s+ia|языков\w+\s+модел\w+|extractors?|parsers?|crawlers?|scrapers?
        |(?:automat\w+|machine|artificial)\s+(?:readers?|agents?|systems?|tools?))\s*:
    | ^[\W\d_]*{_LISTENERS}\s*,\s*(?:scriv\w+|escrev\w+|schrijf|напиши\w*|write|say|reply)\b
    | ^[\W\d_]*à\s+l\Wattention\b | (?:ai|人工知能|アシスタント|モデル|ボット)(?:の皆さん)?(?:へ|宛)\s*[。:：]
    | \b(?:todo|fixme|note)\s*\((?:{_LISTENERS})\)
    | (?:<!--|/\*)[^\n]{{0,60}}?\b(?:{_LISTENERS}|instructions?)\b
    | \{{\{{[\#/]?\s*(?:system|assistant|user)\b
    # Ignoriere alles bisher Gesagte; oublie les instructions du début; ignora lo anterior
    | \b(?:non\s+segu\w+|não\s+sig\w+|no\s+sig\w+|ne\s+(?:suis|suivez)\s+pas|не\s+следуй\w*|volg(?=[^.!?\n]{{0,40}}\bniet\b)|(?:befolge|beachte)(?=[^.!?\n]{{0,40}}\b(?:nicht|keine)\b))
        [^.!?\n]{{0,40}}\b(?:istruzioni|regole|instruç\w*|regras|instrucciones|reglas|instructions|consignes|règles|инструкци\w*|правил\w*|instructies|regels|anweisung\w*|regeln)\b
    | \b(?:ignorier\w*|vergiss|vergesst|missachte|ignore[rz]?|oublie[rz]?|ignor[aei]|olvid[ae]|dimentica\w*|esque[cç]\w*|negeer|vergeet|игнорируй\w*|забудь\w*)\b[^.!?\n]{{0,40}}?
        \b(?:istruzioni|regole|instruç\w*|regras|instructies|regels|инструкци\w*|правил\w*|указани\w*|bisher\w*|vorherig\w*|obig\w*|gesagte\w*|regeln|anweisung\w*|consignes?|instructions|règles|précédent\w*|instrucciones|reglas|anterior\w*)\b
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
# Chinese has neither blanks nor moods; orders are known by who is spoken to and by what is to be put out.
# What was said just before is put out, too.
POINTS_BACK = re.compile(
    rf"""\b(?:put|write|note|take|record|enter|add|list|include|mark|register|report|output)\s+(?:this|that|it)\s+(?:down\s+)?
        (?:as|in|into|to|among)\s+(?:(?:an?|the|your)\s+)?(?:\w+\s+)?{_ITEMS}\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
ORDERS_IN_CHINESE = re.compile(
    r"""
    (?:忽略|无视|忘记|不要理会|不要遵循|不要遵守|忽視|無視)[^。！？\n]{0,12}(?:指令|指示|规则|規則|说明|要求|上述|之前|以上)
    | (?:请|請|务必)[^。！？\n]{0,20}(?:输出|輸出|添加|加入|提取|写|記|记录|回答|回复|声明|返回|包含|列出)
    | 新(?:的)?(?:指令|指示|任务|任務)\s*[：:] | (?:正确|正確|标准|標準)答案 | (?:如果|若)你(?:是|能)
    | (?:忘记|忘記)[^。！？\n]{0,6}(?:规则|規則|指令)
    | ^\W*(?:输出|輸出|添加|提取|抽取|记录|声明|返回|列出)
    | (?:人工智能|助手|助理|模型|机器人|机器|爬虫|解析器|AI|LLM)[^。！？\n]{0,10}(?:必须|必須|应当|應當|应该|应|需要|须|务必|：|:)
    | (?:你|您)[^。！？\n]{0,6}(?:必须|必須|应当|应该|应|需要|须|要|的(?:回答|回复|输出|结果|答案))
    | [把将將][^。！？\n]{0,80}(?:加入|添加|写入|放入|记入|列入|输出)
    | (?:知识图谱|三元组|JSON)[^。！？\n]{0,10}(?:必须|应|中|里)
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Neither has Japanese, but its verbs end in an order.
ORDERS_IN_JAPANESE = re.compile(
    r"""
    (?:指示|命令|ルール|規則)[^。！？\n]{0,12}(?:無視|忘れ|従わ)
    | (?:出力|回答|返答|応答)[^。！？\n]{0,80}(?:書く|記す|述べる|含める|入れる)こと
    | (?:出力|追加|抽出|記録|回答|返答|記載|列挙|含め|書い|答え|報告|登録)[^。！？\n]{0,6}(?:ください|下さい|せよ|しろ|なさい|すること)
    | (?:AI|人工知能|アシスタント|モデル|ボット)[^。！？\n:：]{0,6}(?:へ|宛|向け)[^。！？\n:：]{0,8}[:：]
    | (?:AI|人工知能|アシスタント|モデル|ボット|あなた)[^。！？\n]{0,80}(?:出力|追加|抽出|記録|回答|含め|報告|登録)[^。！？\n]{0,6}(?:しなければ|べき|必要)
    | (?:グラフ|トリプル|JSON|知識)[^。！？\n]{0,80}(?:入れ|加え|追加|含め|登録)[^。！？\n]{0,6}(?:ください|下さい|なさい|こと)
    | (?:出力する|答える|回答する|書く|報告する|記録する)こと(?:。|$)
    | (?:AI|人工知能|アシスタント|モデル|ボット)(?:の皆さん)?(?:へ|宛)。
    | 新しい(?:指示|命令|タスク)\s*[：:] | 正解は | あなたが[^。！？\n]{0,20}(?:モデル|AI|アシスタント)
    | あなたの(?:回答|返答|出力|応答)
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Patterns are slow. A sentence that does not begin with a word of an order (`BEGIN`), and has none that names the listener
# or what is to be put out (`ANYWHERE`), matches none of them. Some are known by how they begin.
# fmt: off
BEGIN = frozenset((
    "output print reply respond answer return emit add include insert list extract report record generate produce write state say claim assume "
    "pretend create put register mark classify treat repeat translate make ensure remember be see let kindly capture tag note gib gebt geben "
    "liste nimm nehmen dis dites di da dear new updated real actual hidden secret special further additional debes tienes trage melde "
    "attention notes message messages nota aviso turn convert devi dovete deves je voeg vermeld zet plaats schrijf antwoord neem noem geef "
    "registreer meld scrivi scriva includi includa estrai elenca stampa diga liste note caro ты вы"
).split())
BEGIN_BEGINS = frozenset(word[:5] for word in (
    "fügen schreibe antworte nenne behaupte erzeuge ergänze vermerke notiere erfasse extrahiere übernimm führe affiche réponds ajoute écris "
    "écrit écrivez écrire indique retourne renvoie renvoyez inclus inclure incluez extrais extraire extrayez génère générez déclare enregistre "
    "considère considérer mentionne produis produire notez noter escriba escribe responda responde añada añade agregue agrega devuelva devolver "
    "imprima incluya incluir incluye extraiga genere muestre declare registre registra indica considere mencione hinweis anweisung notiz "
    "nachricht consigne mensaje aggiungi aggiungete scrivete rispondi risponda includete indichi registri dichiara dichiari restituisci produci "
    "inserisci inserisca adicione adiciona acrescente escreva inclua registe devolva insira produza extraheer beschouw добавь выведи напиши "
    "ответь включи укажи извлеки запиши сообщи внеси верни перечисли считай заяви"
).split()) | {"füge"}
ANYWHERE = frozenset((
    "you your ai ki ia llm llms system developer instruction instructions prompt prompts bot bots gpt claude gemini user human fact facts triple "
    "triples graph graphs json relation relations relationship relationships entity entities output reply response answer supported subject predicate "
    "property object override overrule bypass forget vergiss vergesst missachte oublie oubliez oublier olvida olvide act behave du dein deine deiner "
    "deinem deinen ihr eure euer sie ton ta tes votre vos vous tu tus usted ustedes wer quiconque quien whoever anyone correct expected desired "
    "required role example sample want wants expects translate turn convert imagine pretend assume accordingly tuo tua tuoi tue você vocês teu je jouw uw "
    "whatever scored graded rated judged evaluated json told tell overwrite replace drop graph grafo graaf grafen triple metti põe pon zet only just nur alleen apenas soltanto только solo отвечай ии-систем must should shall say mention include add put list record conclude follow obey heed but then instead automated automatic machine artificial non não no ne не volg befolge beachte tens tem dev deve devem scrivi rispondi escreve escreva responde schrijf antwoord schreib schreibe sag sage melde antworte écris écrivez dis dites réponds escribe напиши скажи ответь напишите "
    "negeer vergeet dimentica esqueça ии ты вы твой твоя твоём твоем "
    "dich dir jetzt nun maintenant ahora ora agora теперь teraz nu sys sistema système systeem система override sudo everything "
    "modèle modelo modello modell model kind faut hay bisogna overrides administrator speaking annotation annotations treat stell stellen let begin tool "
    "required purposes purpose sake beziehung tripel fakt fakten todo fixme developer machine machines knowledge"
).split())
ANYWHERE_BEGINS = frozenset(("assi", "asis", "mode", "modè", "extr", "pars", "craw", "scra", "masc", "máqu", "chat", "igno", "disr", "jail", "spra", "summ", "proc",
                              "anal", "taal", "estr", "асси", "помо", "моде", "игно", "забу", "ваше", "ваша", "ваш", "asks", "expe", "need"))
# fmt: on
MARKS = (
    "a.i.",
    "<|",
    "[inst",
    "[/inst",
    "<<",
    "</",
    "##",
    "<!--",
    "/*",
    "{{",
    "{",
    "[",
    "aiへ",
    "トへ",
    "モデルへ",
    "宛",
    "皆さんへ",
)
