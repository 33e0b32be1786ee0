"""Words that announce a change in many languages: "no longer", "moved", "instead", "ab sofort", "больше не"."""

from __future__ import annotations

import re
from typing import Final

from aforesaid.text.folding import fold

MOST_COUNTED: Final = 4
"""More such words in one text say no more."""
_WORD_PATTERNS: Final = {
    "english": (
        r"now|new|instead|no longer|any ?more|chang(?:e|ed|ing)|mov(?:e|ed|ing)|switch\w*|cancel\w*|"
        r"postponed|off|sold|quit|g[ai]ven? up|stopp\w*|left|back|better|finally|already|got|passed|died|"
        r"broke up|split|divorced|retired|fired|signed|became|turned|from now on|started|correction|"
        r"actually|after all|finished|replac\w*|renamed|extended|rescheduled"
    ),
    "german": (
        r"jetzt|neu(?:e[mnrs]?)?|statt\w*|nicht mehr|keine?[nrs]? \w+ mehr|geandert|umgezogen|gewechselt|"
        r"abgesagt|verschoben|verkauft|gekundigt|aufgehort|inzwischen|mittlerweile|endlich|gestorben|"
        r"getrennt|ab sofort|umgestellt|vorbei|wieder|korrektur"
    ),
    "spanish": (
        r"ahora|nuev[oa]s?|ya no|en vez|en lugar|cambi\w*|mud[eo]\w*|aplaz\w*|vendi\w*|dej[eo]\w*|"
        r"al final|por fin|murio"
    ),
    "french": (
        r"maintenant|nouve(?:au|lle|aux|l)\w*|(?:ne|n'\w+) .{1,20} plus|au lieu|chang\w*|demenag\w*|"
        r"annul\w*|repouss\w*|vendu\w*|quitt\w*|arret\w*|finalement|enfin|desormais"
    ),
    "italian": (
        r"adesso|nuov[oaie]|non .{1,20} piu|invece|al posto|trasferi\w*|annulla\w*|rimanda\w*|spostat\w*|"
        r"vendut\w*|lasciat\w*|smesso|alla fine|finalmente"
    ),
    "portuguese": (
        r"agora|nov[oa]s?|ja nao|nao .{1,20} mais|em vez|mud(?:ei|ou|amos|ar)|adi(?:ado|ada|aram)|"
        r"vend(?:i|eu|emos)|parei|afinal|morreu"
    ),
    "dutch": (
        r"nieuwe?|niet meer|geen \w+ meer|in plaats|verander\w*|verhui\w*|afgezegd|verzet|uitgesteld|"
        r"verkocht|gestopt|toch|eindelijk|overleden|uit elkaar|voortaan"
    ),
    "polish": (
        r"teraz|now[aey]|juz nie|zamiast|zmien\w*|przeprowadz\w*|odwola\w*|przeloz\w*|przesun\w*|"
        r"sprzeda\w*|rzuci\w*|jednak|w koncu|zmarl\w*|rozsta\w*"
    ),
    "turkish": (
        r"art[iı]k|simdi|yeni|yerine|degis\w*|tas[iı]n\w*|iptal|ertele\w*|satt[iı]\w*|b[iı]rak\w*|sonunda|nihayet|"
        r"vazgec\w*"
    ),
    "russian": (
        r"теперь|сейчас|нов(?:ая|ое|ые|ый|ую)|больше не|уже не|вместо|измен\w*|переех\w*|отмен\w*|"
        r"перенес\w*|продал\w*|бросил\w*|уволи\w*|наконец|умер\w*|расста\w*|передумал\w*"
    ),
}
_WORDS: Final = re.compile(rf"\b(?:{'|'.join(_WORD_PATTERNS.values())})\b")
_PIECES: Final = re.compile(
    "अब|नय[ाेी]|नहीं रह|बदल|छोड़|बेच|रद्द|الان|جديد|لم يعد|بدل|انتقل|تاجل|بعت|اخيرا|صار|"
    "现在|新|不再|改|换|搬|取消|推迟|延期|卖|辞|终于|以后|从今|"
    "今は|新し|もう|やめ|変更|変え|変わ|引っ越|中止|売|ようやく|これから|代わり|"
    "이제|새로|더 ?이상|바꾸|바뀌|바꿨|이사|취소|연기|미뤄|팔았|그만|드디어|대신|변경"
)
"""In scripts without spaces or with joined words, parts of words are looked for."""


def count_change_words(text: str) -> int:
    """Return how many words of a text announce a change, at most `MOST_COUNTED`."""
    found = len(_WORDS.findall(fold(text)))
    if not text.isascii():
        found += len(_PIECES.findall(text))
    return min(found, MOST_COUNTED)
