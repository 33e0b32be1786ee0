"""Which function answers which question, in memory."""

from __future__ import annotations

from typing import Final

from aforesaid.store.ephemeral import known_reads, people_reads, reads, retention, search
from aforesaid.store.operations import performers
from aforesaid.store.questions import Question

ANSWERS: Final = performers(Question, *map(vars, (reads, known_reads, people_reads, retention, search)))
