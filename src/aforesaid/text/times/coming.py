"""Recognises statements about what is still to come ("is getting married", "wird heiraten"), and about what is over.

Only in languages whose verbs tell it in a few forms. Elsewhere nothing is known about the direction.
"""

from __future__ import annotations

import re
from typing import Final

from aforesaid.text.folding import fold
from aforesaid.text.times.days import Direction

# Only forms that are not used of the past. In "kommt im Mai" or "arrive en mai" the verb does not tell. What somebody
# does once, and not every year, lies ahead in the present tense too: "gets married on 12 June", "heiratet am 12. Juni".
_COMING: Final = re.compile(
    r"\b(?:will|won't|(?<!was )(?<!were )going to|gonna|about to|"
    r"(?:am|are|is|i'm|we're|you're|they're|he's|she's|it's) (?:still |finally |also |both |all |not )?(?:getting|"
    r"having|moving|starting|expecting|flying|travell?ing|leaving|coming|visiting|opening|turning|retiring|"
    r"graduating|playing)|"
    r"(?<!did )(?<!n't )(?<!not )(?<!to )gets? (?:\w+ )?(?:(?:re)?married|engaged|divorced|promoted|released|"
    r"discharged|baptised|christened|ordained|confirmed|evicted|deployed|operated)|"
    r"(?:am|are|is|i'm|we're|you're|they're|he's|she's|it's) being \w+[^\We]ed|"
    r"werden?|wirst|wird|werdet|heirat(?:e|et|en) (?:\w+ )?(?:am|im|an|zu|in)|"
    r"(?:vais|vas|va|allons|allez|vont) (?:[sm]e |[smt]')?\w+(?:er|ir|re)|"
    r"(?:voy|vas|va|vamos|vais|van) a \w+r(?:me|se|nos)?|"
    r"(?:vou|vai|vamos|vao) (?:[mst]e )?\w+r(?:-se)?|"
    r"me caso|se casan?|[ms]e marie(?:nt)?|nous marions|(?:mi|si|ci) spos(?:o|a|ano|iamo)|"
    r"(?:ga|gaat|gaan|zal|zult|zullen)|trouw(?:t|en)? (?:\w+ )?(?:op|in)|"
    r"(?:ska|skal|skall|kommer att|kommer til a|kommer til at)|"
    r"(?:bede|bedzie(?:sz|my|cie)?|beda)|"
    r"(?:буду|будешь|будет|будем|будете|будут|выход(?:ит|ят|ишь) замуж|выхожу замуж)|"
    r"\w+(?:[ae]ca[gk]|ece[gk])\w*)\b"
    r"|\b\w+'ll\b"
)


# Verbs that tell what happened, as far as they cannot be taken for something else.
_OVER: Final = re.compile(
    r"\b(?:was|were|had|went|came|saw|met|died|fell|lost|won|ran|quit|broke|hurt|sold|ate|drank|drove|flew|slept|fought|"
    r"stole|spent|became|(?<!have )(?<!'ve )(?<!has )(?<!'s )(?:got|bought|found)|"
    r"(?<!is )(?<!are )(?<!am )(?<!'s )(?<!'re )(?<!'m )(?<!be )(?<!get )(?<!gets )(?<!getting )"
    r"(?<!being )(?<!become )(?<!becomes )\w+[^\We]ed|"
    r"(?:hat|habe|haben|ist|bin|sind) (?:[\w.]{1,30} ){0,6}?(?:\w{0,20}ge\w{3,20}(?:t|en)|verstorben)|"
    r"war|waren|wurde|wurden|hatte|hatten|"
    r"(?:est|sont|suis) (?:mort|parti|alle|ne|venu|tombe)e?s?|etait|etaient|"
    r"(?:e|sono) (?:mort|nat|andat|partit|venut|cadut)[oaie]|era|erano|"
    r"murio|nacio|fue|fui|fuimos|fueron|hizo|tuve|tuvo|vino|llego|"
    r"morreu|nasceu|foi|fomos|foram|fez|teve|veio|chegou|"
    r"overleden|"
    r"умер(?:ла|ли)?|был[аои]?|родил(?:ся|ась)|приехал[аи]?|уехал[аи]?|ходил[аи]?)\b"
)
# Arrangements are made for what may lie ahead: "I booked a table for Friday". Other words only look like verbs.
_ARRANGED: Final = re.compile(
    r"\b(?:plan(?:ned)?|scheduled|booked|reserved|invited|arranged|postponed|moved|changed|agreed|decided|promised|offered|"
    r"asked|wanted|supposed|expected|hoped|organi[sz]ed|signed|registered|confirmed|cancel+ed|delayed|pushed|shifted|"
    r"switched|ordered|needed|excited|interested|worried|scared|tired|hundred|tickets?|reminded|until|till|next|tomorrow|"
    r"(?:for|by) (?:\w+ )?(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"verschoben|verlegt|geplant|gebucht|reserviert|eingeladen|verabredet|ausgemacht|vereinbart|angemeldet|bestellt|abgesagt|"
    r"geschlossen|geoffnet|gesperrt|morgen|nachste[nrs]?|(?:fur|bis) (?:\w+ )?\w+(?:tag|woch))\b"
)
_BEGAN_BEFORE: Final = re.compile(r"\b(?:since|seit|depuis|desde|sinds|sedan)\b")
_NAME: Final = re.compile(r"\bWill\b")


def lies_ahead(text: str) -> bool:
    """Return whether a text speaks of what is still to come, as far as its verbs tell.

    "Will" with a capital letter is somebody's name, and "is getting worse since May" speaks of a May that is over.
    """
    folded = fold(_NAME.sub("", text)).replace("’", "'")
    return _COMING.search(folded) is not None and _BEGAN_BEFORE.search(folded) is None


def direction_of(text: str) -> Direction:
    """Return the direction in which a text's verbs say that its days lie: "nearest" if they do not tell.

    "Rex died on Sunday" speaks of the last Sunday, and "we fly on Sunday" may mean the next one.
    """
    if lies_ahead(text):
        return "future"
    folded = fold(text).replace("’", "'")
    return "past" if _OVER.search(folded) and not _ARRANGED.search(folded) else "nearest"
