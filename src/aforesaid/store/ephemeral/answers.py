"""Which function answers which question, in memory."""

from __future__ import annotations

from typing import Final

from aforesaid.store.ephemeral import erasing, known_reads, people_reads, reads, search
from aforesaid.store.operations import performers
from aforesaid.store.questions import Question

ANSWERS: Final = performers(Question, *map(vars, (reads, known_reads, people_reads, erasing, search)))
