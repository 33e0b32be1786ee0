"""The receipt of one request of the proxy: what of the memory went to the provider, and what came back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter

from aforesaid.context.context import Item, sections_of_items
from aforesaid.domain.checks import moment, now
from aforesaid.domain.context_receipt import REQUEST, ContextReceipt, SentSection, new_receipt_id
from aforesaid.domain.scope import Scope
from aforesaid.models.tokens import counter_for
from aforesaid.server.proxy.insertion import NO_TEXT, MemoryText, empty
from aforesaid.server.proxy.reply import Reply


@dataclass(slots=True)
class RequestReceipt:
    """What is noted while a request is answered."""

    model: str | None
    request_tokens: int
    """Tokens of what the client itself sent."""
    budget: int = 0
    """Tokens that the memory was allowed to add."""
    text: MemoryText = NO_TEXT
    """What was added from the memory."""
    limited: str | None = None
    """Why something may be missing; None if all sources were searched."""
    created: int = field(default_factory=now)
    id: str = ""
    milliseconds: dict[str, int] = field(default_factory=dict)
    _began: float = field(default_factory=perf_counter)

    def __post_init__(self) -> None:
        """Make the id, which the client gets before the receipt is stored."""
        self.id = new_receipt_id(self.created)

    def restart_clock(self) -> None:
        """Note that the request goes to the provider now."""
        self._began = perf_counter()

    def note(self, what: str) -> None:
        """Note how long something took since the clock was started, unless it was noted before."""
        self.milliseconds.setdefault(what, round((perf_counter() - self._began) * 1_000))

    def sent_without_memory(self) -> None:
        """Note that the provider got the request as the client sent it."""
        self.text = NO_TEXT

    def receipt(
        self, scope: Scope, thread: str, caller: str, profile: str, *, reply: int | None, answer: Reply | None
    ) -> ContextReceipt:
        """Return the receipt. `reply` is the number of the stored reply, `answer` what the provider sent."""
        counter = counter_for(self.model)
        known = sections_of_items(_known(self.text.items), self.text.tokens, lambda name: counter.count(empty(name)))
        sections = (*known, SentSection(REQUEST, self.request_tokens))
        return ContextReceipt(
            id=self.id,
            space=scope.space,
            user=scope.user,
            thread=thread,
            at=moment(self.created),
            caller=caller,
            profile=profile,
            budget=self.budget,
            tokens=sum(section.tokens for section in sections),
            sections=sections,
            model=self.model,
            reply=reply,
            input_tokens=None if answer is None else answer.input_tokens,
            output_tokens=None if answer is None else answer.output_tokens,
            milliseconds=dict(self.milliseconds),
            limited=self.limited,
        )


def _known(items: Iterable[Item]) -> list[Item]:
    """Return each item once: one that is in the stable text can be offered again."""
    return list({(item.section, item.key): item for item in items}.values())
