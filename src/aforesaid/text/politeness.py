"""Words that ask for something politely: "please", "could you"."""

from __future__ import annotations

import re
from typing import Final

POLITE: Final = re.compile(
    r"\b(?:please|pls|kindly|would you|could you|bitte|könnten sie|por favor|s'il (?:vous|te) plaît|per favore|"
    r"alsjeblieft|alstublieft|proszę|lütfen|пожалуйста|من فضلك|لو سمحت|कृपया)\b|[请請]|お願い|ください|下さい|주세요",
    re.IGNORECASE,
)
