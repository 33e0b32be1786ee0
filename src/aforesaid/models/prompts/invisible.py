"""Remove characters that a model reads but a person does not see."""

from __future__ import annotations

import re
from typing import Final

# What Unicode calls default ignorable: zero-width and bidirectional controls, fillers, variation selectors, tags. The
# list is written out, so that the same text gives the same prompt with every version of Python. Signs that are drawn,
# such as the Arabic sign of a number, are not in it.
_IGNORABLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CONTROLS: Final = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_LAST_OF_PLANES: Final = "".join(
    chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)
)
_NONCHARACTERS: Final = "\ufdd0-\ufdef" + _LAST_OF_PLANES

_EMOJI: Final = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
_JOINING: Final = (
    "\u0620-\u06ff\u0710-\u077f\u08a0-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17d3\u1820-\u18aa"
    "\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
)
"""Arabic, Syriac, the scripts of India, Burmese, Khmer, Mongolian: here joiners change what is read."""

_NEEDED: Final = re.compile(
    f"(?<=[{_EMOJI}])[\ufe0e\ufe0f]"  # a symbol drawn as text or in colour
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"  # a key
    f"|(?:(?<=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f))\u200d(?=[{_EMOJI}])"  # several symbols drawn as one
    f"|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
)
_INVISIBLE: Final = re.compile(f"[{_IGNORABLE}{_CONTROLS}{_NONCHARACTERS}]")
_LINE_ENDS: Final = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PLAIN_SPACES: Final = {ord("\n"): " ", ord("\t"): " "}
"""What stays although Python does not count it as printable."""


def strip_invisible(text: str) -> str:
    """Return a text without what cannot be seen. What can be seen stays as it is.

    Zero-width characters, marks that turn the direction of writing, tag characters, fillers, variation selectors and
    control characters go: instructions can be hidden in them. Tabs stay, line ends become newlines. Half of a surrogate
    pair becomes U+FFFD. Kept are the joiners and selectors without which something else would be seen: inside of emoji,
    and between two letters of scripts that need them. Flags of regions (England, Texas) are spelled in tag characters
    and become plain flags.
    """
    if text.isascii() and (text.isprintable() or text.translate(_PLAIN_SPACES).isprintable()):
        return text
    text = _SURROGATE.sub("\ufffd", _LINE_ENDS.sub("\n", text))
    return _INVISIBLE.sub(_kept, text)


def _kept(found: re.Match[str]) -> str:
    return found[0] if _NEEDED.match(found.string, found.start()) else ""
