"""Rewrites summaries with a model that were made without one."""

from __future__ import annotations

from aforesaid.digest.digest import Digest
from aforesaid.digest.writing import WITHOUT_MODEL, Written
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Revise, Summary
from aforesaid.errors import SourcesChanged
from aforesaid.profiles.recipe import POLICIES
from aforesaid.store import questions


async def to_redo(digest: Digest, limit: int, after: int = 0) -> list[Summary]:
    """Return active summaries made without a model, if a model is configured now."""
    if not digest.redo or not digest.executor.writer.has_model():
        return []
    found: list[Summary] = []
    for kind in POLICIES[digest.policy].kinds:
        found += await digest.executor.store.read(
            questions.SummariesWithoutModel(kind, WITHOUT_MODEL, after, limit - len(found))
        )
    return found


async def redo(digest: Digest, summary: Summary) -> Summary | None:
    """Let a model write the next version of a summary.

    Return None if it failed or another process was faster. Raises NotFound if the summary was deleted, because a
    message that it covers was taken back or erased.
    """
    executor, scope = digest.executor, Scope(summary.space, summary.user, summary.thread)
    below = [await executor.store.read(questions.SummaryById(scope, source)) for source in summary.sources]
    messages = []
    if summary.level == 1 and summary.reach != "sources":
        covered = await executor.store.read(questions.CoveredMessages(scope, summary.id))
        messages = [message for message in covered if message.seq >= summary.fresh]
    characters = executor.profile.summary_characters
    written: Written
    if summary.kind in ("rolling", "history"):
        written = await executor.writer.onwards(scope, below[0] if below else None, messages, characters)
    elif summary.kind == "day":
        written = await executor.writer.of_messages(scope, messages, executor.profile.day_characters)
    else:
        important = await executor.important(scope, summary.first, summary.last)
        if below:
            written = await executor.writer.of_summaries(scope, below, characters, important)
        else:
            written = await executor.writer.of_messages(scope, messages, characters, important)
    if written.model is None:
        return None
    change = Revise(
        scope,
        summary.id,
        written.text,
        model=written.model,
        prompt=written.prompt,
        quality=await executor.quality(written, messages, below),
        created_at=digest.clock(),
    )
    try:
        return (await executor.store.apply([change])).summary
    except SourcesChanged:
        return None
