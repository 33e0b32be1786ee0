"""What English statements are worth remembering: patterns of the first person, with category and importance."""

from __future__ import annotations

from typing import Final

from aforesaid.models.offline.memories.keys import JOBS, RELATIONS
from aforesaid.models.offline.memories.rules.form import rule
from aforesaid.text.words import alternatives

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
