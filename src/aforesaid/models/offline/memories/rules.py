"""Rules per language that recognise statements worth remembering."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from aforesaid.domain.checks import Category
from aforesaid.extras import re
from aforesaid.models.offline.memories.keys import JOBS, RELATIONS
from aforesaid.text.times.days import Direction
from aforesaid.text.words import alternatives

__all__ = ["RULES", "Rule"]


class Rule(NamedTuple):
    """A pattern of sentences, the category of what they say and how important that is."""

    category: Category
    importance: int
    pattern: re.Pattern[str]
    timed: Literal["past", "future"] | None
    """In which direction there must be a time in the sentence."""
    towards: Direction
    """How a date that leaves it open is read."""
    questions: bool
    """Whether a question fits too, such as a request, and an "if"."""


def rule(
    category: Category,
    importance: int,
    *patterns: str,
    timed: Literal["past", "future"] | None = None,
    towards: Direction = "nearest",
    questions: bool = False,
) -> Rule:
    """Make a rule that one of several patterns is enough for."""
    ahead = category in {"schedule", "task", "reminder"}
    direction: Direction = timed or ("future" if ahead else towards)
    return Rule(category, importance, re.compile("|".join(patterns)), timed, direction, questions)


ARABIC: Final = (
    rule("reminder", 8, r"ذكرني", questions=True),
    rule("fact", 9, r"\bاسمي\b", r"عيد ميلادي", r"لدي حساسية من|عندي حساسية من"),
    rule(
        "fact",
        8,
        r"(?<!لا )\b(?:اعيش|اسكن) في\b",
        r"\bانتقلت (?:\w+ ){0,3}الى\b",
        r"(?<!لا )\bاعمل (?:الان )?(?:في|لدي)\b",
    ),
    rule("fact", 7, r"\bعمري \d", r"\bانا من\b", r"\bانا متزوجه?\b"),
    rule("preference", 6, r"\b(?:احب|اكره|لا احب)\b", r"\bافضل \w+ على\b"),
)


CHINESE: Final = (
    rule("reminder", 8, r"提醒我", questions=True),
    rule(
        "schedule",
        7,
        r"(?:我|我们)?.{0,12}(?:开会|会议|考试|面试|婚礼|航班|葬礼|约了|预约|看医生|看牙|手术|聚会|出差)",
        timed="future",
    ),
    rule("fact", 10, r"我对.{1,10}过敏"),
    rule("fact", 9, r"我叫|我的名字是|我的名字叫|我(?:的)?生日是|我出生于|我出生在"),
    rule(
        "fact",
        8,
        r"我(?:现在|目前)?住在|我.{0,4}搬到|我在.{1,12}(?:工作|上班|上学|读书)|我是(?:一名|一个|个).{1,10}",
        towards="past",
    ),
    rule(
        "fact",
        7,
        r"我(?:今年)?\d{1,3}岁|我来自|我是.{1,6}人(?:[，。！]|$)|我(?:已经)?(?:结婚|离婚|怀孕)了|我有(?:一|两|三|四|\d)(?:个|只|条)(?:孩子|儿子|女儿|姐姐|妹妹|哥哥|弟弟|狗|猫)",
    ),
    rule(
        "fact",
        6,
        r"^我(?:的)?(?:妻子|老婆|丈夫|老公|妈妈|爸爸|姐姐|妹妹|哥哥|弟弟|儿子|女儿|女朋友|男朋友|朋友|狗|猫).{0,4}(?:叫|是|住|在)",
    ),
    rule("preference", 6, r"我(?:非常|很|最|特别)?(?:喜欢|爱吃|爱喝|讨厌|不喜欢|更喜欢|偏好)(?!你|他|她|这|那)"),
    rule("preference", 6, r"^[A-Za-z ]{2,30}(?:强烈|更|非常|很)?(?:喜欢|偏好|讨厌)"),
)


DUTCH: Final = (
    rule("reminder", 8, r"\bherinner me\b", questions=True),
    rule("fact", 9, r"\bik heet\b", r"\bmijn naam is\b", r"\bmijn verjaardag is\b", r"\bik ben \w* ?allergisch\b"),
    rule(
        "fact",
        8,
        r"\bik woon (?:in|bij|met)\b",
        r"\bik ben .*verhuisd\b",
        r"\bik werk (?:bij|als|voor)\b",
        towards="past",
    ),
    rule(
        "fact",
        7,
        r"\bik ben \d{1,3}(?: jaar|\s*$|[.,!])",
        r"\bik kom uit\b",
        r"\bik ben (?:getrouwd|gescheiden|zwanger|vegetarier|veganist)\b",
    ),
    rule("preference", 6, r"\bik (?:hou van|haat|vind .* leuk)\b(?! (?:je|jou)\b)", r"\bmijn favoriete\b"),
)


_ADVERBS: Final = (
    r"(?: (?:really|actually|just|also|still|currently|now|always|absolutely|totally|recently|finally|usually|often|"
    r"honestly|definitely|originally|already|even|sometimes|only|officially|mostly|mainly))*"
)
_I: Final = rf"\bI{_ADVERBS} "
_AM: Final = rf"\bI(?:'m| am){_ADVERBS} "
_HAVE: Final = rf"\bI(?:'ve| have)?{_ADVERBS} "
_WE: Final = rf"\b(?:I|[Ww]e)(?:'ve| have)?{_ADVERBS} (?!\w+')"
_WILL: Final = rf"\b(?:I|[Ww]e)(?:'ll| will| shall){_ADVERBS} "
_GOING: Final = rf"\b(?:I'm|I am|[Ww]e're|[Ww]e are){_ADVERBS} "
_SOMEBODY: Final = (
    r"^(?!(?:He|She|It|They|We|You|This|That|There|Who|What|Everyone|Everybody|Nobody|Somebody|Someone|My|Our|Your|The)\b)"
    r"[A-Z]\w+(?: [A-Z]\w+)? (?:\w+ly )?"
)
_GRAVE: Final = r"funeral|surgery|operation|wedding|exam|flight|interview|deadline|hearing|trial|defen[sc]e"
_EVENTS: Final = (
    r"appointment|meeting|dentist|doctor|test|party|concert|presentation|check-?up|conference|class|lesson|course|workshop|"
    r"game|match|tournament|race|marathon|show|performance|recital|reservation|booking|trip|vacation|holiday|dinner|lunch|"
    r"breakfast|brunch|date|call|ceremony|graduation|shift|rehearsal|practice|festival|reunion|barbecue|bbq|picnic|session|"
    r"train|bus|ferry|audition|delivery|sabbatical|anniversary|birthday"
)
_ACTIONS: Final = (
    r"send|deliver|finish|fix|call|e-?mail|write|review|submit|prepare|update|restructure|book|buy|pay|pick|bring|check|"
    r"clean|return|schedule|set|share|provide|attend|ship|complete|re-?run|reply|answer|apply|register|sign|order|cancel|"
    r"renew|visit|do|get|give|make|organi[sz]e|arrange|confirm|print|upload|publish|deploy|test|move|stop|start|respect|"
    r"route|text|message|ask|contact|post|wash|cook|repair|plan|adjust|revert|take"
)
_IDLE: Final = alternatives("""
    feeling trying thinking looking wondering hoping using working struggling considering asking talking saying being
    planning wanting
""")
_SOMETHING: Final = r"(?!(?:it|that|this|them|you|those|these|him|her|how|when|what|so|the way|your)\b)\S"
_ANIMALS: Final = r"cats?|dogs?|pets?|pupp(?:y|ies)|kittens?|horses?|rabbits?|parrots?"
_NATIONS: Final = (
    r"American|British|German|French|Spanish|Italian|Russian|Chinese|Japanese|Indian|Polish|Ukrainian|Turkish|Brazilian|"
    r"Canadian|Australian|Irish|Dutch|Swedish|Mexican|Korean|Greek|Portuguese|Arab|Egyptian|Nigerian"
)
_ILLNESSES: Final = (
    r"diabetes|asthma|epilepsy|celiac|migraines?|anxiety|depression|arthritis|cancer|insomnia|adhd|a heart"
)

ENGLISH: Final = (
    rule(
        "reminder",
        8,
        r"(?:^|\b(?:[Pp]lease|you|and|to|,) )[Rr]emind me (?:to|about|that|at|on|in|when|tomorrow|next)\b",
        r"^[Rr]emind me of\b",
        questions=True,
    ),
    rule(
        "reminder", 7, r"\b[Dd]on't let me forget\b", r"\b[Ss]et (?:me )?a reminder\b", r"^[Rr]eminder:", questions=True
    ),
    rule("fact", 7, r"\bI no longer \w+", r"\bI (?:don't|do not) .*\bany ?more\b"),
    rule("fact", 9, r"\b[Mm]y (?:\w+ )?name is\b", r"\b[Cc]all me [A-Z]", r"\bI'm (?:called|named)\b", r"\bI go by\b"),
    rule("fact", 9, r"\b[Mm]y birthday(?: is|'s)\b", rf"{_I}was born\b"),
    rule("schedule", 9, rf"(?:{_HAVE}|\b[Mm]y |\b[Tt]he |\b[Tt]here's |^).*?\b(?i:{_GRAVE})\b", timed="future"),
    rule(
        "schedule",
        7,
        rf"(?:{_HAVE}(?:got )?|\b[Mm]y |\b[Oo]ur |\b[Ww]e have |\b[Tt]here's |^)(?:[\w'-]+ ){{0,5}}(?i:{_EVENTS})\b",
        timed="future",
    ),
    rule("fact", 6, r"^(?i:(?:\w+ ){0,2}facts?|note|fyi|important|info|for the record)\b[^:]{0,30}: \w+"),
    rule("fact", 10, rf"{_AM}(?:\w+ )?allergic to\b", r"\b[Mm]y (?:\w+ )?allergy\b"),
    rule(
        "fact", 9, rf"{_HAVE}(?:been |was |got )?diagnosed\b", rf"{_I}(?:have|suffer from) (?:\w+ )?(?:{_ILLNESSES})\b"
    ),
    rule(
        "fact",
        8,
        rf"{_WE}(?:live|reside) (?:in|at|near|on|with|alone|outside|just|right|close)\b",
        rf"{_GOING}(?:living|based) (?:in|at|near|with)\b",
        rf"{_AM}moving to\b",
        rf"{_WE}(?:moved|relocated) (?:\w+ )?(?:to|into|in|from|out|back)\b",
        towards="past",
    ),
    rule(
        "fact",
        8,
        rf"{_I}(?:work|intern|freelance) (?:at|for|as|in|with|from)\b",
        rf"{_AM}working (?:at|for|as)\b",
        rf"{_HAVE}(?:got|started|landed|accepted|found|lost|quit|left) (?:\w+ ){{0,2}}jobs?\b",
        rf"{_HAVE}(?:(?:got |been )?promoted|retired)\b",
        rf"{_I}(?:run|own|founded|manage) (?:a|an|my)\b",
        rf"{_AM}an? (?:[\w-]+ ){{0,3}}{JOBS}\b",
    ),
    rule(
        "fact",
        8,
        rf"{_AM}(?:a |an )?(?:\w+ )?(?:vegetarian|vegan|pescatarian|diabetic|widower?|refugee|veteran)\b",
        rf"{_AM}(?:pregnant|married|engaged|divorced|single|widowed|retired|unemployed|expecting|dating)\b",
        rf"{_HAVE}(?:got |been |gotten )(?:married|engaged|divorced)\b",
        rf"{_AM}an? (?:\w+ ){{0,2}}(?:mom|mum|mother|dad|father|parent|twin)\b",
    ),
    rule("fact", 7, rf"{_AM}\d{{1,3}}(?: years? old|\s*$|[.,!])", rf"{_HAVE}turned \d{{1,3}}\b"),
    rule(
        "fact",
        7,
        rf"{_AM}(?:originally )?from [A-Z]",
        rf"{_I}(?:grew up|come from|was raised)\b",
        rf"{_AM}(?:{_NATIONS})\b",
    ),
    rule(
        "fact",
        7,
        rf"{_HAVE}(?:have |got )?(?:an?|one|two|three|four|five|\d) (?:\w+ ){{0,2}}(?:{_ANIMALS})\b",
        rf"{_HAVE}(?:have |got )?(?:an?|one|two|three|four|five|\d) (?:\w+ ){{0,2}}"
        r"(?:kids?|children|sons?|daughters?|sisters?|brothers?|siblings?|twins|grandchildren)\b",
        rf"{_HAVE}adopted\b",
    ),
    rule(
        "fact",
        7,
        r"\b[Mm]y (?:e-?mail|phone|phone number|number|address|zip code|postcode|car|blood type)(?: \w+)? is\b",
    ),
    rule(
        "fact",
        6,
        rf"^My (?:\w+ )?{RELATIONS}(?:'s)?\b(?!.*\b(?:says?|said|told|thinks?)\b).*"
        r"\b(?:is|are|was|has|had|lives?|works?|moved|died|passed|got|loves?|likes?|hates?|named|called|studies|plays?)\b",
    ),
    rule(
        "fact",
        6,
        rf"{_I}(?:study|major in)\b",
        rf"{_AM}(?:studying|majoring|learning)\b",
        rf"{_HAVE}graduated\b",
        rf"{_I}speak (?:\w+ )?[A-Z]",
        r"\b[Mm]y (?:native|mother|first) (?:language|tongue)\b",
    ),
    rule("preference", 6, r"\b[Mm]y (?:all[- ]time )?favou?rite\b.*\b(?:is|are|was)\b"),
    rule(
        "preference",
        6,
        rf"{_I}(?:prefer|love|like|enjoy|adore|hate|dislike|can't stand|cannot stand|despise) {_SOMETHING}",
        rf"{_I}(?:don't|do not) (?:really )?(?:like|enjoy|eat|drink|care for) {_SOMETHING}",
        rf"{_AM}(?:a (?:(?:big|huge|real|total) )?(?:fan|lover) of|fond of|obsessed with|into) {_SOMETHING}",
        rf"{_AM}(?:passionate about|interested in|keen on|addicted to|scared of|afraid of) {_SOMETHING}",
    ),
    rule(
        "task",
        7,
        rf"{_I}(?:need to|have to|must|gotta|ought to|forgot to|promised to) "
        r"(?!(?:say|admit|be|agree|know|see|tell you|thank)\b)\w+",
        r"\bI(?:'ve| have) got to (?!(?:say|admit|be)\b)\w+",
        rf"{_AM}supposed to\b",
        r"^(?i:to-?do|task|action item)s?:",
    ),
    rule(
        "task",
        6,
        rf"{_WILL}(?:also |have to )?(?:{_ACTIONS})\b(?! (?:sure|care|my best|it|you know|(?:you|ya|u) posted)\b)",
    ),
    # Notes leave out the "I".
    rule("task", 6, r"^(?:Promised|Committing to|Committed to)\b", rf"^Will (?:{_ACTIONS})\b"),
    rule(
        "task",
        6,
        rf"{_SOMEBODY}(?:has )?(?:committed|promised|agreed) to\b",
        rf"{_HAVE}(?:committed|promised|agreed) to\b",
    ),
    rule(
        "other",
        6,
        rf"{_WE}(?:decided|chose|chosen|switched|settled on|opted)\b",
        rf"{_SOMEBODY}(?:has )?decided\b",
        r"^(?:Decided|Switching|Adopting|Decision made)\b",
        r"\b[Ww]e're (?:going with|switching|adopting|moving to)\b",
    ),
    rule("schedule", 6, rf"{_GOING}(?!{_IDLE}\b)\w+ing\b", rf"{_WILL}\w+", timed="future"),
    rule(
        "preference", 5, rf"{_I}(?:always|usually|never|often) (?!(?:thought|knew|wanted|felt|had|have|mind|said)\b)\w+"
    ),
    rule(
        "other",
        5,
        rf"{_GOING}(?:planning|hoping|thinking of|considering|training|preparing|saving|looking for|looking into)\b",
        r"\b(?:I|[Ww]e) (?:plan|intend|hope|want) to (?!(?:be|say|know|thank|hear|see|make sure|ensure|check)\b)\w+",
        r"\b[Mm]y (?:dream|goal|plan|aim|ambition) (?:is|was)\b",
    ),
    rule("preference", 6, rf"{_SOMEBODY}(?:prefers|likes|loves|hates|dislikes|enjoys|wants (?:me|us) to)\b"),
    rule("other", 5, rf"{_SOMEBODY}wants\b"),
    rule(
        "other",
        5,
        rf"{_WE}(?:bought|sold|joined|started|finished|won|lost|broke|passed|failed|attended|visited)\b",
        rf"{_WE}(?:travell?ed|went|flew|drove|signed up|applied|published|painted|built|made|wrote|ran|hiked)\b",
        rf"{_WE}(?:met|saw|took|had|got|received|volunteered|participated|organi[sz]ed|launched|opened)\b",
        rf"{_WE}(?:completed|celebrated|performed|hurt|recovered)\b",
        timed="past",
    ),
    rule(
        "other",
        4,
        rf"{_WE}(?:bought|sold|joined|won|signed up|applied for|published|launched|opened|volunteered|enrolled)\b",
        rf"{_WE}(?:went to|attended|visited|started|finished|painted|built|wrote|hiked|met|took up|passed|broke) \w",
        rf"\bI(?:'ve| have){_ADVERBS} been \w+ing\b",
    ),
)
"""In the order in which they are tried: the first that fits decides."""


_FRENCH_EVENTS: Final = (
    r"rendez-vous|rdv|reunion|examen|mariage|vol|enterrement|concert|entretien|dentiste|medecin|voyage|fete"
)
_FRENCH_FAMILY: Final = (
    r"femme|mari|soeur|frere|mere|pere|fille|fils|copine|copain|ami|amie|chef|chien|chat|grand-mere|grand-pere|enfants?"
)

FRENCH: Final = (
    rule("reminder", 8, r"\brappelle[- ]moi\b|\brappelez[- ]moi\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:j'ai|nous avons|on a)\b.*\b(?:{_FRENCH_EVENTS})\b",
        rf"\bm(?:on|a) (?:{_FRENCH_EVENTS}) est\b",
        timed="future",
    ),
    rule("fact", 10, r"\bje suis (?:\w+ )?allergique\b"),
    rule("fact", 9, r"\bje m'appelle\b", r"\bmon (?:pre)?nom est\b", r"\bmon anniversaire est\b", r"\bje suis nee?\b"),
    rule(
        "fact",
        8,
        r"\bj'habite (?:a|en|au|dans|avec|chez|pres)\b",
        r"\bje vis (?:a|en|au|dans|avec)\b",
        r"\bj'ai demenage\b",
        towards="past",
    ),
    rule(
        "fact",
        8,
        r"\bje travaille (?:chez|a|pour|comme|dans|en)\b",
        r"\bj'etudie\b",
        r"\bje suis (?:medecin|professeur|ingenieur|avocat|infirmi|etudiant)",
    ),
    rule("fact", 8, r"\bje suis (?:marie|divorce|enceinte|fiance|celibataire|vegetarien|vegan)"),
    rule(
        "fact",
        7,
        r"\bj'ai \d{1,3} ans\b",
        r"\bje viens d(?:e|u|es) [a-z]+\s*(?:$|[.,])",
        r"\bj'ai (?:un|une|deux|trois|quatre) (?:enfant|fils|fille|soeur|frere|chien|chat)",
    ),
    rule("fact", 6, rf"^m(?:on|a|es) (?:{_FRENCH_FAMILY}) (?:s'appelle|est|habite|vit|travaille|a)\b"),
    rule(
        "preference",
        6,
        r"\bj(?:'aime|'adore|e deteste|e prefere)\b(?! (?:que|ca|cela)\b)",
        r"\bje n'aime pas\b(?! (?:que|ca|cela)\b)",
        r"\bm(?:on|a) \w+ preferee? est\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:prefere|deteste|adore)\b"),
)


_GERMAN_EVENTS: Final = (
    r"termin|zahnarzt|arzttermin|meeting|besprechung|prufung|klausur|hochzeit|flug|beerdigung|konzert|vorstellungsgesprach|"
    r"verabredung|feier|reise|urlaub"
)
_GERMAN_FAMILY: Final = (
    r"frau|mann|schwester|bruder|mutter|mama|vater|papa|tochter|sohn|freund|freundin|chef|oma|opa|"
    r"hund|katze|kind|kinder"
)

GERMAN: Final = (
    rule("reminder", 8, r"\berinner[e]? mich (?:an|daran|bitte|morgen)\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:ich|wir) hab(?:e|en)?\b.*(?:{_GERMAN_EVENTS})\b",
        rf"\bmein[e]? \w*(?:{_GERMAN_EVENTS}) ist\b",
        timed="future",
    ),
    rule("fact", 10, r"\bich bin (?:\w+ )?allergisch gegen\b"),
    rule(
        "fact",
        9,
        r"\bich heisse\b",
        r"\bmein name ist\b",
        r"\bmein geburtstag ist\b",
        r"\bich habe am .* geburtstag\b",
        r"\bich bin (?:am|in) .*geboren\b",
    ),
    rule(
        "fact",
        8,
        r"\bich (?:wohne|lebe) (?:jetzt |seit \w+ )?(?:in|bei|mit)\b",
        r"\bich bin (?:\w+ ){0,5}(?:um)?gezogen\b",
        towards="past",
    ),
    rule(
        "fact",
        8,
        r"\bich arbeite (?:jetzt |seit \w+ )?(?:bei|als|fur|in)\b",
        r"\bich bin \w+ von beruf\b",
        r"\bich studiere\b",
    ),
    rule(
        "fact",
        8,
        r"\bich bin (?:verheiratet|verlobt|geschieden|schwanger|vegan|vegetarier(?:in)?|veganer(?:in)?)\b",
    ),
    rule("fact", 7, r"\bich bin \d{1,3}(?: jahre alt|\s*$|[.,!])", r"\bich komme (?:ursprunglich )?aus\b"),
    rule(
        "fact",
        7,
        rf"\bich habe (?:eine?n?|zwei|drei|vier) (?:{_GERMAN_FAMILY}|hunde|katzen|schwestern|bruder|sohne|tochter)\b",
    ),
    rule("fact", 6, rf"^mein[e]? (?:{_GERMAN_FAMILY}) (?:heisst|ist|wohnt|lebt|arbeitet|hat|mag|liebt)\b"),
    rule(
        "preference",
        6,
        r"\bich (?:mag|liebe|hasse|bevorzuge)\b(?! (?:dich|es|das|dass)\b)",
        r"\bich (?:esse|trinke) (?:gern|kein)",
        r"\bmein[e]? lieblings\w+ (?:ist|sind)\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:bevorzugt|mag|liebt|hasst)\b"),
)


# Verbs whose form is a noun too ("su trabajo") count at the beginning, or after the pronoun.
_IO: Final = r"(?:^|[,;] |\b(?:io|e|ma|ora|adesso|attualmente|anche|perche) )"
_ITALIAN_EVENTS: Final = (
    r"appuntamento|riunione|esame|matrimonio|volo|funerale|concerto|colloquio|dentista|medico|viaggio|festa"
)
_ITALIAN_FAMILY: Final = (
    r"moglie|marito|sorella|fratello|madre|mamma|padre|papa|figlia|figlio|ragazza|ragazzo|amico|amica|capo|cane|gatto|"
    r"nonna|nonno"
)

ITALIAN: Final = (
    rule("reminder", 8, r"\bricordami\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:ho|abbiamo)\b.*\b(?:{_ITALIAN_EVENTS})\b",
        rf"\bil mio (?:{_ITALIAN_EVENTS}) e\b",
        timed="future",
    ),
    rule("fact", 10, r"\bsono (?:\w+ )?allergic[oa] a"),
    rule("fact", 9, r"\bmi chiamo\b", r"\bil mio nome e\b", r"\bil mio compleanno e\b", r"\bsono nat[oa]\b"),
    rule("fact", 8, rf"{_IO}(?:vivo|abito) (?:a|in|con)\b", r"\bmi sono trasferit[oa]\b", towards="past"),
    rule(
        "fact",
        8,
        rf"{_IO}lavoro (?:a|per|come|in|presso|da)\b",
        rf"{_IO}studio \w+",
        r"\bsono (?:spos|divorzi|incint|fidanz|vegetarian|vegan)",
    ),
    rule(
        "fact",
        7,
        r"\bho \d{1,3} anni\b",
        r"\bvengo da\b",
        r"\bho (?:un|una|due|tre|quattro) (?:figli|sorell|fratell|can|gatt)",
    ),
    rule("fact", 6, rf"^(?:(?:il )?mio|(?:la )?mia) (?:{_ITALIAN_FAMILY}) (?:si chiama|e|vive|abita|lavora|ha)\b"),
    rule(
        "preference",
        6,
        r"\b(?:mi piace|mi piacciono|non mi piace|amo|odio|preferisco)\b(?! (?:che|questo)\b)",
        r"\b(?:preferit[oa]) e\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:preferisce|odia|adora)\b"),
)


JAPANESE: Final = (
    rule("reminder", 8, r"(?:思い出させて|リマインドして|教えてください|忘れないように)", questions=True),
    rule(
        "schedule",
        7,
        r"(?:会議|打ち合わせ|予約|試験|面接|結婚式|葬式|フライト|コンサート|歯医者|病院|手術|出張)(?:が(?:ある|あり)|に行|の予定|です|だ)",
        timed="future",
    ),
    rule("fact", 10, r"アレルギー(?:が(?:ある|あり)|です|だ)"),
    rule("fact", 9, r"(?:私|僕|俺)の名前は|と申します|(?:私|僕)の誕生日は|誕生日は.{1,10}(?:です|だ)"),
    rule(
        "fact",
        8,
        r"に住んで(?:いる|います|いて|る)(?!.{0,4}ない)|に引っ越し(?:た|まし)|で働いて(?:いる|います|る)|に勤めて(?:いる|います|る)",
        towards="past",
    ),
    rule("fact", 7, r"\d{1,3}歳(?:です|だ)|の出身(?:です|だ)|結婚して(?:いる|います)"),
    rule("preference", 6, r"が(?:大)?好き(?:です|だ|。|$)|が(?:大)?嫌い(?:です|だ|。|$)|の方が(?:好き|いい)"),
)


# Verbs whose form is a noun too ("su trabajo") count at the beginning, or after the pronoun.
_EU: Final = r"(?:^|[,;] |\b(?:eu|e|mas|agora|atualmente|tambem|porque) )"
_PORTUGUESE_EVENTS: Final = (
    r"consulta|reuniao|exame|prova|casamento|voo|enterro|concerto|show|entrevista|dentista|medico|viagem|festa"
)
_PORTUGUESE_FAMILY: Final = (
    r"esposa|mulher|marido|irma|irmao|mae|pai|filha|filho|namorada|namorado|amigo|amiga|chefe|cachorro|gato|avo"
)

PORTUGUESE: Final = (
    rule("reminder", 8, r"\b(?:me lembre|me lembra|lembre-me|lembra-me)\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:tenho|temos)\b.*\b(?:{_PORTUGUESE_EVENTS})\b",
        rf"\bminh[ao] (?:{_PORTUGUESE_EVENTS}) e\b",
        timed="future",
    ),
    rule("fact", 10, r"\bsou (?:\w+ )?alergic[oa] a"),
    rule(
        "fact",
        9,
        r"\b(?:me chamo|chamo-me)\b",
        r"\bmeu nome e\b",
        r"\bmeu aniversario e\b",
        r"\b(?:eu )?nasci (?:em|no|na)\b",
    ),
    rule(
        "fact",
        8,
        rf"{_EU}(?:moro|vivo) (?:em|no|na|com)\b",
        r"\b(?:me mudei|mudei-me|mudei) para\b",
        towards="past",
    ),
    rule(
        "fact",
        8,
        rf"{_EU}trabalho (?:em|no|na|para|como|com)\b",
        rf"{_EU}estudo \w+",
        r"(?<!nao )\bsou (?:casad|solteir|divorciad|vegetarian|vegan)",
        r"(?<!nao )\bsou (?:medic|professor|engenheir|advogad|enfermeir|estudante)",
    ),
    rule(
        "fact",
        7,
        r"\btenho \d{1,3} anos\b",
        r"(?<!nao )\bsou d[eao] [a-z]",
        r"\btenho (?:um|uma|dois|duas|tres|quatro) (?:filh|irma|cachorr|gat)",
    ),
    rule("fact", 6, rf"^(?:meu|minha) (?:{_PORTUGUESE_FAMILY}) (?:se chama|e|mora|vive|trabalha|tem|esta)\b"),
    rule(
        "preference",
        6,
        r"\b(?:gosto|nao gosto|adoro|odeio|prefiro)\b(?! (?:que|disso|isso)\b)",
        r"\b(?:favorit[oa]|preferid[oa]) e\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:\w+mente )?(?:prefere|odeia|adora)\b"),
)


_RUSSIAN_EVENTS: Final = (
    r"встреча|прием|врач[ау]?|стоматолог[ау]?|экзамен|свадьба|рейс|самолет|похороны|концерт|собеседование|собрание|"
    r"поездка"
)
_RUSSIAN_FAMILY: Final = (
    r"жена|муж|сестра|брат|мама|мать|папа|отец|дочь|сын|подруга|друг|начальник|собака|кошка|кот|бабушка|дедушка|дети"
)

RUSSIAN: Final = (
    rule("reminder", 8, r"\bнапомни(?:те)? мне\b|\bнапомни\b", questions=True),
    rule("schedule", 7, rf"\b(?:у меня|у нас)\b.*\b(?:{_RUSSIAN_EVENTS})\b", timed="future"),
    rule("fact", 10, r"\bу меня (?:\w+ )?аллергия на\b"),
    rule("fact", 9, r"\bменя зовут\b", r"\bмой день рождения\b", r"\bя родил(?:ся|ась)\b"),
    rule(
        "fact",
        8,
        r"\bя (?:сейчас |теперь )?живу (?:в|на|с)\b",
        r"(?<!не )\bживу в [а-я]",
        r"\bя (?:недавно )?переехал[а]? (?:в|на|из)\b",
        towards="past",
    ),
    rule(
        "fact",
        8,
        r"\bя (?:сейчас |теперь )?работаю\b(?! над\b)",
        r"\bя учусь\b",
        r"\bя (?:женат|замужем|разведен[а]?|беременна|вегетарианец|вегетарианка|веган)\b",
        r"\bя (?:врач|учитель|инженер|студент|студентка|программист)\b",
    ),
    rule(
        "fact",
        7,
        r"\bмне \d{1,3} (?:лет|год|года)\b",
        r"\bя (?:родом )?из [а-я]",
        r"\bу меня (?:есть )?(?:дв[ае]|три|четыре|один|одна)? ?(?:сын|дочь|дет|ребен|сестр|брат|собак|кошк|кот)",
    ),
    rule(
        "fact",
        6,
        rf"^мо[йяи] (?:{_RUSSIAN_FAMILY}) (?:живет|работает|зовут|любит|—|-|родил)",
        r"^мо(?:ю|его) (?:жену|мужа|сестру|брата|маму|папу|дочь|сына|собаку|кошку|кота) зовут\b",
    ),
    rule(
        "preference",
        6,
        r"\bя (?:очень )?(?:люблю|обожаю|ненавижу|предпочитаю)\b(?! тебя)",
        r"\bмне (?:очень )?нрав(?:ится|ятся)\b(?! (?:это|что)\b)",
        r"\bмне не нрав(?:ится|ятся)\b",
        r"\bя не (?:люблю|ем|пью)\b",
        r"\bмо[йяе] любим(?:ый|ая|ое)\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:\w+ )?(?:предпочитает|ненавидит|обожает)\b"),
)


# Verbs whose form is a noun too ("su trabajo") count at the beginning, or after the pronoun.
_YO: Final = r"(?:^|[,;] |\b(?:yo|y|pero|ahora|actualmente|tambien|porque) )"
_SPANISH_EVENTS: Final = (
    r"cita|reunion|examen|boda|vuelo|funeral|concierto|entrevista|dentista|medico|viaje|fiesta|clase"
)
_SPANISH_FAMILY: Final = (
    r"esposa|mujer|marido|esposo|hermana|hermano|madre|mama|padre|papa|hija|hijo|"
    r"novia|novio|amigo|amiga|jefe|perro|gato"
)

SPANISH: Final = (
    rule("reminder", 8, r"\brecuerdame\b|\bacuerdame\b", questions=True),
    rule(
        "schedule",
        7,
        rf"\b(?:tengo|tenemos)\b.*\b(?:{_SPANISH_EVENTS})\b",
        rf"\bmi (?:{_SPANISH_EVENTS}) es\b",
        timed="future",
    ),
    rule("fact", 10, r"\bsoy (?:\w+ )?alergic[oa] a"),
    rule("fact", 9, r"\bme llamo\b", r"\bmi nombre es\b", r"\bmi cumpleanos es\b", r"\bnaci (?:en|el)\b"),
    rule("fact", 8, rf"{_YO}vivo (?:en|con)\b", r"\bme (?:he mudado|mude) a\b", towards="past"),
    rule(
        "fact",
        8,
        rf"{_YO}trabajo (?:en|para|como|de)\b",
        rf"{_YO}estudio (?!de\b|para\b)\w+",
        r"(?<!no )\bsoy (?:medic|profesor|ingenier|abogad|enfermer|estudiante)",
    ),
    rule(
        "fact",
        8,
        r"(?<!no )\bestoy (?:casad|divorciad|embarazad|prometid)",
        r"(?<!no )\bsoy (?:vegetarian|vegan|solter)",
    ),
    rule(
        "fact",
        7,
        r"\btengo \d{1,3} anos\b",
        r"(?<!no )\bsoy de [a-z]",
        r"\btengo (?:un|una|dos|tres|cuatro) (?:hij|herman|perr|gat)",
    ),
    rule("fact", 6, rf"^mi (?:{_SPANISH_FAMILY}) (?:se llama|es|vive|trabaja|tiene|esta)\b"),
    rule(
        "preference",
        6,
        r"\b(?:me gusta[n]?|me encanta[n]?|no me gusta[n]?|odio|prefiero)\b(?! (?:que|eso|esto)\b)",
        r"\bmi \w+ favorit[oa] es\b",
    ),
    rule("preference", 6, r"^\w+(?: \w+)? (?:\w+mente )?(?:prefiere|odia|adora)\b"),
)


RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "english": ENGLISH,
    "german": GERMAN,
    "spanish": SPANISH,
    "french": FRENCH,
    "italian": ITALIAN,
    "portuguese": PORTUGUESE,
    "dutch": DUTCH,
    "russian": RUSSIAN,
    "arabic": ARABIC,
    "chinese": CHINESE,
    "japanese": JAPANESE,
}
