"""Countries and the words for their people and things: `Japanese` says Japan. Plain geography, not
learned.
"""

from __future__ import annotations

_TABLE = """
Afghanistan:Afghan Albania:Albanian Algeria:Algerian Andorra:Andorran Angola:Angolan
Argentina:Argentine,Argentinian Armenia:Armenian Australia:Australian Austria:Austrian
Azerbaijan:Azerbaijani,Azeri Bahrain:Bahraini Bangladesh:Bangladeshi Belarus:Belarusian Belgium:Belgian
Bolivia:Bolivian Bosnia_and_Herzegovina:Bosnian Botswana:Botswanan Brazil:Brazilian Bulgaria:Bulgarian
Cambodia:Cambodian Cameroon:Cameroonian Canada:Canadian Chile:Chilean China:Chinese Colombia:Colombian
Costa_Rica:Costa_Rican Croatia:Croatian Cuba:Cuban Cyprus:Cypriot Czech_Republic:Czech
Czechoslovakia:Czechoslovak Denmark:Danish Dominican_Republic:Dominican Ecuador:Ecuadorian Egypt:Egyptian
El_Salvador:Salvadoran England:English Estonia:Estonian Ethiopia:Ethiopian Fiji:Fijian Finland:Finnish
France:French Georgia:Georgian Germany:German Ghana:Ghanaian Greece:Greek Guatemala:Guatemalan Haiti:Haitian
Honduras:Honduran Hong_Kong: Hungary:Hungarian Iceland:Icelandic India:Indian Indonesia:Indonesian
Iran:Iranian Iraq:Iraqi Ireland:Irish Israel:Israeli Italy:Italian Ivory_Coast:Ivorian Jamaica:Jamaican
Japan:Japanese Jordan:Jordanian Kazakhstan:Kazakh,Kazakhstani Kenya:Kenyan Kuwait:Kuwaiti Kyrgyzstan:Kyrgyz
Laos:Laotian Latvia:Latvian Lebanon:Lebanese Liberia:Liberian Libya:Libyan Lithuania:Lithuanian
Luxembourg:Luxembourgish Madagascar:Malagasy Malaysia:Malaysian Mali:Malian Malta:Maltese Mexico:Mexican
Moldova:Moldovan Monaco:Monegasque Mongolia:Mongolian Montenegro:Montenegrin Morocco:Moroccan
Mozambique:Mozambican Myanmar:Burmese Namibia:Namibian Nepal:Nepalese,Nepali Netherlands:Dutch New_Zealand:
Nicaragua:Nicaraguan Nigeria:Nigerian North_Korea:North_Korean North_Macedonia:Macedonian Norway:Norwegian
Oman:Omani Pakistan:Pakistani Panama:Panamanian Paraguay:Paraguayan Peru:Peruvian
Philippines:Filipino,Philippine Poland:Polish Portugal:Portuguese Puerto_Rico:Puerto_Rican Qatar:Qatari
Romania:Romanian Russia:Russian Rwanda:Rwandan Saudi_Arabia:Saudi,Saudi_Arabian Scotland:Scottish
Senegal:Senegalese Serbia:Serbian Singapore:Singaporean Slovakia:Slovak Slovenia:Slovene,Slovenian
Somalia:Somali South_Africa:South_African South_Korea:South_Korean Soviet_Union:Soviet Spain:Spanish
Sri_Lanka:Sri_Lankan Sudan:Sudanese Sweden:Swedish Switzerland:Swiss Syria:Syrian Taiwan:Taiwanese
Tanzania:Tanzanian Thailand:Thai Tunisia:Tunisian Turkey:Turkish Uganda:Ugandan Ukraine:Ukrainian
United_Arab_Emirates:Emirati United_Kingdom:British United_States:American Uruguay:Uruguayan Uzbekistan:Uzbek
Venezuela:Venezuelan Vietnam:Vietnamese Wales:Welsh Yemen:Yemeni Yugoslavia:Yugoslav Zambia:Zambian
Zimbabwe:Zimbabwean
"""


def _read(table: str) -> tuple[dict[str, str], frozenset[str]]:
    demonyms: dict[str, str] = {}
    countries = []
    for item in table.split():
        country, _, words = item.replace("_", " ").partition(":")
        countries.append(country.lower())
        for word in filter(None, words.split(",")):
            demonyms[word.lower()] = country
    return demonyms, frozenset(countries)


DEMONYMS, COUNTRIES = _read(_TABLE)
# From the first word of a place to the number of words of the longest that begins so.
PLACE_REACH: dict[str, int] = {}
for _words in (name.split() for name in (*DEMONYMS, *COUNTRIES)):
    PLACE_REACH[_words[0]] = max(len(_words), PLACE_REACH.get(_words[0], 0))
