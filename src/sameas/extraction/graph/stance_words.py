"""The words that take a statement back, by what they do and where they stand, in English, German, French and Spanish.

Each is a regular expression that ignores case. `BETWEEN` stands between the ends of a claim, `BEFORE` before the first,
`AFTER` after the last.
"""

_WHEN_IT_WAS_GREAT = (
    r"\b(?:in|at|during)\s+(?:its|his|her|their)\s+(?:heyday|prime|peak|height|zenith)\b"
    r"|\b(?:in|auf|während)\s+(?:seiner|ihrer|seinem|ihrem)\s+(?:blütezeit|glanzzeit|höhepunkt)\b"
    r"|\bà\s+son\s+apogée\b|\ben\s+su\s+(?:apogeo|auge)\b"
)
OVER_BETWEEN = (
    _WHEN_IT_WAS_GREAT,
    r"\b(?:removed|discontinued|dropped|deprecated|entfernt|supprimé|retirado)\s*:",
    r"['\u2019]s\s+(?:time|tenure|term|reign|stint)\s+as\b",
    r"\b(?:once|previously|in the past|outgoing|departing|predecessor\s+(?:of|as)|the late|vacated|then-\w+)\b",
    (
        r"\b(?:retire[sd]?\s+(?:as|from)|(?:hand(?:s|ed)|hands)\s+over|part(?:s|ed)\s+(?:ways|company)|vot(?:es|ed)\s+out"
        r"|mov(?:es|ed)\s+(?:away|out)|g[ai]ve[sn]?\s+up|(?:lost|clos(?:es|ed)|shut)\s+(?:its|his|her|their))\b"
    ),
    (
        r"\bfrüher\w*|\b(?:einst\w*|damals(?!\s+\d)|damalig\w*|ehemals|bis\s+(?:\d{4}|zum|zur|januar|februar|märz|april|mai|juni|juli"
        r"|august|september|oktober|november|dezember))\b"
    ),
    (
        r"\b(?:autrefois|jadis|naguère|quitt(?:é|a|e|ent)|cess(?:é|a|e)\s+d|étai(?:t|ent)\s+alors"
        r"|(?:été|est|fut|sont)\s+remplacée?s?)\b"
    ),
    (
        r"\b(?:en\s+su\s+(?:día|época|momento)|antes(?!\s+de)|antiguamente|anteriormente|anterior|despedid[oa]|(?:fue|es|ha\s+sido)\s+(?:reemplaz|sustitu)\w+"
        r"|dej(?:ó|aron)(?!\s+un)|ex(?=\s)|renunció\s+como)\b"
    ),
    r"\bex(?:direct|president|ministr|alcald|jef[ea])\w*",
)
OVER_BEFORE = (
    rf"(?:{_WHEN_IT_WAS_GREAT})[^;]*\Z",
    (
        r"^\W*(?:in the past|formerly|previously|früher|einst|damals|ehemals|autrefois|jadis|naguère|antiguamente"
        r"|anteriormente|en el pasado|antes(?!\s+de))\b(?:,\s*)?[^,;]*\Z"
    ),
    r"^\W*once\s+[^,;]*\Z",
    r"\b(?:succ[éè]d\w*\s+à|sucedi(?:ó|eron)\s+a|sucede\s+a)\s+\Z",
    r"\b(?:fired|dismissed|sacked|removed|entließ\w*|despidió|destituyó)\s+(?:[\w-]+\s+){0,3}\Z",
    r"\b(?:frühere\w*|damalige\w*|then|outgoing|late|anterior)\s+(?:[\w-]+\s+){1,4}(?:of|at|for|von|der|des|de|del)\s+(?:the\s+)?\Z",
    r"\bex(?:-|\s|(?=direct|president|ministr|alcald|jef))[a-zé]+\s+(?:of|at|von|de|du|del|der)\s+(?:the\s+|la\s+|l')?\Z",
    r"\bpredecessor\s+of\b[^;]*\Z",
)
OVER_AFTER = (
    rf"\A[^;]*(?:{_WHEN_IT_WAS_GREAT})",
    r"\A,?\s*(?:(?:has|had)\s+(?:since\s+)?been|was|is)\s+(?:replaced|succeeded|dismissed|fired|ousted|sacked)\b",
    (
        r"\A(?:\s+(?:has|had|have|then|later|now))*\s+(?:ma(?:de|kes|king)\s+way|gave\s+way|given\s+way|yielded)\b|\A\s+(?:hat|hatte)\b[^,;]*\bPlatz\s+gemacht"
        r"|\A\s+macht\w*\b[^,;]*\bPlatz\b|\A\s+(?:a|avait)\s+(?:laissé|cédé)\b|\A\s+(?:laisse|cède)\b|\A\s+cedió\b"
    ),
    r"\bhas\s+since\s+(?:moved|left|closed|died|retired|resigned)\b|\bbefore\s+(?:moving|leaving|resigning|retiring)\b",
    r"\A(?:\s+\w+){0,4}\s+(?:entlassen|zurückgetreten|abberufen|abgesetzt|ausgeschieden)\b",
)
_WRONGLY = (
    r"\b(?:wrongly|falsely|mistakenly|erroneously|incorrectly"
    r"|fälschlich\w*|irrtümlich\w*|zu\s+unrecht|à\s+tort|erróneamente|por\s+error)\b"
)
_FORBIDDEN = (
    r"(?:untersagt|verboten|verhindert|interdit|empêché|bloqué|prohibid|impedid|bloquead|forbidden|prohibited"
    r"|vetoed)\w*"
)
NEGATED_BETWEEN = (
    r"\b(?:refus(?:e[sd]?|ing)|declin(?:e[sd]?|ing))\s+to\s+let\b",
    _WRONGLY,
    r"\b(?:lack(?:s|ed|ing)|ha(?:s|ve|d)\s+yet\s+to|(?:a|ont|avait)\s+failli)\b",
    (
        r"\b(?:nowhere|far\s+from|anything\s+but|everywhere\s+but(?=\s)|call(?:s|ed)\s+off|walk(?:s|ed)\s+away"
        r"|(?:blocked|prevented|barred|banned|kept)\s+from|rul(?:es|ed|ing)\s+out|(?:lost|missed)\s+(?:the|its|a)\s+chance"
        r"|avoid(?:s|ed|ing)?|(?:abandon|cancel|scrap|withdr)\w*\s+(?:its|the|their|his|her|from)|pull(?:s|ed)\s+out)\b"
    ),
    (
        r"\b(?:bestreitet(?=\s*,|\s+(?:den|die|das|jede)\b)|bestritt\w*|dementier\w+|verzicht\w+|ablehn\w+|lehn\w+\s+(?:es\s+)?ab|scheiter\w+|weiger\w+"
        r"|keineswegs|mitnichten|statt)\b"
    ),
    r"\b(?:ni|faux|dément\w*|nient|renonc\w+|refus\w+|échou\w+|abandonn\w+)\b",
    r"\b(?:tampoco|falso|nieg\w+|negó|desm(?:ien|int)\w+|renunci\w+|rechaz\w+)\b",
)
NEGATED_BEFORE = (
    r"\b(?:refus(?:e[sd]?|ing)|declin(?:e[sd]?|ing))\s+to\s+let\s+\Z",
    rf"{_WRONGLY}[^;]*\Z",
    r"^\W*(?:under\s+no|at\s+no|in\s+no|by\s+no|never|nobody|no\s+one)\b[^,;]*\Z|^\W*far\s+from\b[^;]*\Z",
    r"\b(?:nothing|little)\s+(?:suggests?|indicates?|shows?|proves?|points)\b[^;]*\Z|\bnichts\s+(?:deutet|spricht|belegt)\b[^;]*\Z",
    r"\brien\s+(?:n['\u2019]indique|ne\s+(?:prouve|montre|suggère))\b[^;]*\Z|\bnada\s+(?:indica|sugiere|demuestra|prueba)\b[^;]*\Z",
    r"\b(?:instead\s+of|rather\s+than|anstelle\s+von|statt|au\s+lieu\s+de|en\s+lugar\s+de|en\s+vez\s+de)\s+\Z",
    r"\b(?:nicht|kein\w*|falsch|unwahr|erfunden|bestr(?:eitet|itt\w*)|dementier\w+)\b[^;]*\bdass\b[^;]*\Z",
    r"\b(?:il\s+est\s+faux|faux\s+que|es\s+falso|no\s+(?:es|hay)\s)[^;]*\Z|^\W*ni\s+[^,;]*\Z",
)
NEGATED_AFTER = (
    rf"\A(?:\s+(?:wurde|worden|ist|war|a|été|est|fut|fue|ha|sido|was|were|has|been))+\s+{_FORBIDDEN}",
    rf"\A[^;]*,\s*{_WRONGLY}",
    (
        r"\A(?:\s+(?:ist|war|a|ha|has|had|have|was|were|finally))*\s+(?:gescheitert|geplatzt|scheiterte|platzte|échoué|fracas(?:ó|ado)|collapsed|failed"
        r"|fell\s+through|blocked|called\s+off|abandoned|cancelled)\b"
    ),
    r"\A(?:\s+(?!und\b|aber\b|sondern\b|war\b|ist\b|sind\b)\w+){0,3}\s+(?:nicht|nie|niemals)\b",
)
HEDGED_BETWEEN = (
    r"(?-i:\bwird\s+(?:(?:im|am|ab|zum|bald|demnächst|künftig|neue[rn]?|der|die)\s+(?:\w+\s+)?)*[A-ZÄÖÜ][\w-]+\s+(?:von|der|des|bei)\b)",
    r"\b(?:is|are|was|were)\s+(?:still\s+)?(?:looking|searching)\s+for\s+an?\b",
    (
        r"\b(?:sera|seront|aura|auront|fera|feront|deviendra|deviendront|pourra|pourront|devra|devront|emploiera|emploieront"
        r"|dirigera|comptera|ouvrira)\b"
    ),
    # It judges what stands right behind it, not the far end of a long sentence.
    r"\b(?:was|were|is|are)\s+to\s+(?!the\b|an?\b|its\b|date\b|their\b|his\b|her\b)(?:[^\s]+\s+){0,6}\Z",
    (
        r"\b(?:it\s+(?:is|was)\s+said|seem(?:s|ed)?|tipped|poised|mull(?:s|ed|ing)|eyeing|weigh(?:s|ing)\s+(?:a|an|up|whether)"
        r"|(?:some|people|sources|they)\s+say)\b"
    ),
    (
        r"\b(?:wohl|vermutlich|wahrscheinlich|offenbar|anscheinend|mutmaßlich\w*|womöglich|erwäg\w+|beabsichtig\w+|versuch\w+"
        r"|hofft|hätten?|wären?|dürften?|solle|wolle|wollen|wollte\w*)\b|(?-i:\b(?:habe|sei|will)\b)"
    ),
    (
        r"\b(?:esp[èé]r(?:e|ent|ait)\s+\w+(?:er|ir|re)|veut|veulent|voulai\w+|souhait\w+|(?:va|vont)\s+\w+(?:er|ir|re)|(?:au|se)rai(?:t|ent)|probablement|apparemment"
        r"|prétendument|\w*[éèêç]\w*era(?:ient|it|ont)?)\b"
    ),
    (
        r"\b(?:quier\w+|dese[ao]n?|vana?\s+a|va\s+a|(?:habr|ser)ían?|serán?|esperan?\s+\w+r|(?:proba|posi)blemente|tal\s+vez|al\s+parecer"
        r"|supuestamente|presuntamente|\w{2,}(?:ará|erá|irá)n?)\b"
    ),
)
HEDGED_BEFORE = (
    # Who will be in office is not in office.
    (
        r"\b(?:designierte\w*|künftige\w*|angehende\w*|future?|futur[oa]|incoming|prochaine?|próxim[oa])\s+(?:[\w-]+\s+){1,4}"
        r"(?:(?:of|at|for|von|der|des|de|du|del)\s+(?:the\s+|la\s+)?|d['\u2019])\Z"
    ),
    (
        r"^\W*(?:an?|one|some|several|many)\s+(?!\w*\s*(?:spokes|statement|court|judge|press))(?:[\w-]+\s+){1,3}(?:wrote|writes?|said|says?|posted"
        r"|tweeted|argue[sd]?|insist(?:s|ed)?|suggest(?:s|ed)?)\s+(?:that\s+)?[^;]*\Z"
    ),
    r"\b(?:spoof|parody|satire|mock|fake|deepfake|parodie|parodia|sátira)\b[^;]*\Z",
    r"^\W*(?:as\s+a\s+joke|jokingly|in\s+jest|zum\s+spaß|pour\s+rire|en\s+broma|ojalá)\b",
    r"\bin\s+th(?:is|at)\s+(?:film|movie|novel|book|story|series|play|tale)\b[^;]*\Z",
    r"\b(?:(?:some|sources|people|they|insiders|critics|reports?)\s+(?:say|claim|suggest)|it\s+(?:is|was)\s+said)\b[^;]*\Z",
    r"\b(?:provided|providing)\s+(?:that\s+)?\Z|^\W*(?:has|have|is|are|was|can|could|will)\s+(?:the\s+)?\Z",
    r"\bin\s+(?:an?|this|that|its|their|his|her|the)\s+(?!(?:following|next|first|second|third|last|final|previous)\s+episode)(?:\w+\s+)?(?:episode|dream|tale|comic|sitcom|sketch|scenario)\b(?!\s*\W?\Z)[^;]*\Z",
    (
        r"\b(?:film|movie|novel|book|story|series|play|episode|tale|roman|película|novela|serie|historia)\s+(?:tells|imagines|shows"
        r"|describes|depicts|recounts|erzählt|zeigt|schildert|beschreibt|raconte|montre|imagine|cuenta|narra|muestra|imagina)\b[^;]*\Z"
    ),
    (
        r"\b(?:fictional|fictitious|imaginary|satirical|hoax|april\s+fool|fiktive\w*|erfundene\w*|fictif|fictive|imaginaire"
        r"|ficticio|ficticia)\b[^;]*\Z"
    ),
    r"\b(?:im|in\s+(?:dem|einem|der|einer|seinem|ihrem|diesem))\s+(?:film|roman|buch|märchen|stück|serie|spiel|traum)\b(?!\s*\W?\Z)[^;]*\Z",
    (
        r"\b(?:dans|en)\s+(?:le|la|un|une|ce|cette|son|sa|su|el|una)\s+(?:film|roman|livre|série|pièce|conte|rêve|película|novela"
        r"|serie|cuento|obra|sueño)\b(?!\s*\W?\Z)[^;]*\Z"
    ),
    r"\b(?:sage|légende|leyenda)\b[^;]*\Z|^\W*(?:hätte|wäre|würde|sollte)\s",
    r"\b(?:gerüchten\s+zufolge|dem\s+vernehmen\s+nach|es\s+heißt|vermutlich|wahrscheinlich|möglicherweise|offenbar)\b[^;]*\Z",
    r"\b(?:on\s+(?:dit|prétend|ignore)|il\s+para[îi]t|des\s+rumeurs|suppos\w+|imagin\w+|peut-être|probablement)\b[^;]*\Z",
    (
        r"\b(?:quizás?|tal\s+vez|al\s+parecer|supuestamente|presuntamente|probablemente|se\s+(?:dice|rumorea)|no\s+se\s+sabe"
        r"|supongamos)\b[^;]*\Z|^\W*si\s[^;]*\Z|\bsi\s+\Z"
    ),
)
HEDGED_AFTER = (
    r"\A[^,;]*\b(?:worden|gewesen)?\s*(?:wäre|hätte)n?\W*\Z",
    r"\bor\s+so\s+it\b|\b(?:critics|sources|some|people|insiders|observers)\s+(?:say|said|allege\w*|claim\w*|suggest\w*)\b",
    r"\bit\s+(?:is|was)\s+(?:said|claimed|alleged|rumou?red)\b|\bsubject\s+to\s+\w*\s*(?:approval|consent)\b|\bthe\s+joke\s+went\b",
    r"\b(?:hieß|heißt)\s+es\b|\bdem\s+vernehmen\s+nach\b|\bparaît-il\b|\bal\s+parecer\b",
)
# What says no to a property of yes and no without a word of denial.
UNTRUE = (r"\b(?:closed[-\s]source|proprietary|proprietär\w*|propriétaire|propietari[oa])\b",)
# Who says, reports or announces that somebody does something, up to the conjunction.
REPORTED = (
    (
        r"\b(?:sa(?:id|ys?|ying)|report(?:s|ed|ing)?|announc(?:es?|ed|ing)|t(?:old|ells?|elling)|stat(?:es?|ed|ing)|inform(?:s|ed|ing)?"
        r"|confirm(?:s|ed|ing)?|explain(?:s|ed|ing)?|mention(?:s|ed|ing)?|add(?:s|ed|ing)?|not(?:es?|ed|ing)|wr(?:ites?|ote|iting)|declar(?:es?|ed|ing)"
        r"|reveal(?:s|ed|ing)?|disclos(?:es?|ed|ing)|remark(?:s|ed)?|point(?:s|ed)\s+out|recall(?:s|ed)?|emphasi[sz](?:es?|ed)|learn(?:s|ed|t)"
        r"|hear[ds]?|kn(?:ows?|ew))\b[^.,;:!?]{0,60}?\s+that\b"
    ),
    (
        r"\b(?:berichte\w*|sag(?:t|te|ten|en)|gesagt|teil(?:t|te|ten|en)\b[^.;:!?]{0,60}?\bmit|mitgeteilt|g[ai]b(?:t|en)?\b[^.;:!?]{0,60}?\bbekannt"
        r"|bekanntgegeben|erklär\w+|kündig\w+\b[^.;:!?]{0,60}?\ban|angekündigt|meld(?:et|ete|eten|en)|gemeldet|informier\w+|erwähn\w+|bestätig\w+"
        r"|beton(?:t|te|ten|en)|schr(?:eibt|ieb|ieben)|geschrieben|verkünde\w*|erzähl\w+|wies\b[^.;:!?]{0,60}?\bdarauf\s+hin|erfuhr\w*|weiß)"
        r"[^.,;:!?]{0,60},\s*dass\b"
    ),
    (
        r"\b(?:annonc\w+|rapport(?:e|ent|é|a|ait)|dit|dis(?:ent|ait)|déclar\w+|indiqu\w+|fai(?:t|sait)\s+savoir|fit\s+savoir|affirm\w+|précis\w+"
        r"|expliqu\w+|confirm\w+|signal(?:e|ent|é|a|ait)|racont\w+|écri(?:t|vait|vit)|inform\w+|rappel\w+|soulign\w+|ajout\w+|révél\w+"
        r"|appr(?:is|end|it))\b[^.;:!?]{0,60}?\s(?:que\b|qu(?=['\u2019]))"
    ),
    (
        r"\b(?:anunci\w+|inform(?:ó|a|an|aron|ado|aba)|dij(?:o|eron)|dice[n]?|dicho|comunic(?:ó|a|aron|ado)|declar(?:ó|a|aron|ado)|explic(?:ó|a|aron|ado)"
        r"|señal(?:ó|a|aron|ado)|afirm(?:ó|a|aron|ado)|confirm(?:ó|a|aron|ado)|indic(?:ó|a|aron|ado)|report(?:ó|a|aron|ado)|cont(?:ó|aron|ado)"
        r"|escribi(?:ó|eron)|añadi(?:ó|eron)|reveló|recordó|subray(?:ó|a))\b[^.;:!?]{0,60}?\s(?:de\s+)?que\b"
    ),
)
# What goes back to somebody or something named before, in the same languages.
GOES_BACK = (
    (
        r"\b(?:it|its|he|she|his|her|hers|him|they|their|them|who|i|we|our|us|there|here|both|same"
        r"|the\s+(?:company|firm|group|business|organi[sz]ation)\b(?!\s+(?-i:[^\W\d_a-zà-ÿ])))\b"
    ),
    (
        r"\b(?:er|sie|es|ihn|ihm|ihr\w*|sein|seine[rnms]?|wir|uns\w*|ich|dort|hier|deren|dessen|davon|damit|dafür|dazu|beide\w*"
        r"|(?:das|die|der)\s+(?:unternehmen|firma|gesellschaft|konzern|gruppe)\b(?!\s+(?-i:[^\W\d_a-zà-ÿ])))\b"
    ),
    (
        r"\b(?:il|elle|ils|elles|lui|son|sa|ses|leurs?|nous|notre|nos|y|là|celle|celui|l['\u2019](?:entreprise|organisation)"
        r"|(?:la|le)\s+(?:société|firme|groupe)\b(?!\s+(?-i:[^\W\d_a-zà-ÿ])))\b"
    ),
    r"\b(?:él|ella|ellos|su|sus|le|les|nosotros|nuestr[oa]s?|allí|ambos|(?:la|el)\s+(?:empresa|compañía|sociedad|grupo|firma)\b(?!\s+(?-i:[^\W\d_a-zà-ÿ])))\b",
)
