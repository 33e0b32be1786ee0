"""The languages of the panel: texts, numbers and dates.

English texts are the keys of the catalogues, and what is shown where a catalogue lacks one. Templates call `_` and
`_n`, Python calls `translate` and `plural`; all of them use the language of the request that is being answered.
"""

from aforesaid.server.languages.catalogue import ENGLISH, Language, read_language
from aforesaid.server.languages.current import (
    COOKIE,
    N_,
    Languages,
    OfferedLanguages,
    current,
    plural,
    translate,
    using,
)
from aforesaid.server.languages.error_texts import translate_error

__all__ = [
    "COOKIE",
    "ENGLISH",
    "N_",
    "Language",
    "Languages",
    "OfferedLanguages",
    "current",
    "plural",
    "read_language",
    "translate",
    "translate_error",
    "using",
]
