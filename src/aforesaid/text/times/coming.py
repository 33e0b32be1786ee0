"""Recognises statements about what is still to come: "is getting married", "wird heiraten", "va a casarse"."""

from __future__ import annotations

import re
from typing import Final

from aforesaid.text.folding import fold

# Only forms that are not used of the past. In "kommt im Mai" or "arrive en mai" the verb does not tell.
_COMING: Final = re.compile(
    r"\b(?:will|won't|(?<!was )(?<!were )going to|gonna|about to|"
    r"(?:am|are|is|i'm|we're|you're|they're|he's|she's|it's) (?:still |finally |also |both |all |not )?(?:getting|"
    r"having|moving|starting|expecting|flying|travell?ing|leaving|coming|visiting|opening|turning|retiring|"
    r"graduating|playing)|"
    r"werden?|wirst|wird|werdet|"
    r"(?:vais|vas|va|allons|allez|vont) (?:[sm]e |[smt]')?\w+(?:er|ir|re)|"
    r"(?:voy|vas|va|vamos|vais|van) a \w+r(?:me|se|nos)?|"
    r"(?:vou|vai|vamos|vao) (?:[mst]e )?\w+r(?:-se)?|"
    r"(?:ga|gaat|gaan|zal|zult|zullen)|"
    r"(?:ska|skal|skall|kommer att|kommer til a|kommer til at)|"
    r"(?:bede|bedzie(?:sz|my|cie)?|beda)|"
    r"(?:буду|будешь|будет|будем|будете|будут)|"
    r"\w+(?:[ae]ca[gk]|ece[gk])\w*)\b"
    r"|\b\w+'ll\b"
)


_BEGAN_BEFORE: Final = re.compile(r"\b(?:since|seit|depuis|desde|sinds|sedan)\b")
_NAME: Final = re.compile(r"\bWill\b")


def lies_ahead(text: str) -> bool:
    """Return whether a text speaks of what is still to come, as far as its verbs tell.

    "Will" with a capital letter is somebody's name, and "is getting worse since May" speaks of a May that is over.
    """
    folded = fold(_NAME.sub("", text)).replace("’", "'")
    return _COMING.search(folded) is not None and _BEGAN_BEFORE.search(folded) is None
