"""The writes of rules, over dictionaries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aforesaid.domain.checks import moment, now
from aforesaid.domain.memory import NoteKey, Tombstone
from aforesaid.domain.report import AuditEntry
from aforesaid.domain.scope import Scope
from aforesaid.store.ephemeral import erasing
from aforesaid.store.ephemeral.state import State, person
from aforesaid.store.operations import performers
from aforesaid.store.rules import writes

if TYPE_CHECKING:
    from aforesaid.store.ephemeral.changes import Changes


def _keep_user(work: Changes, write: writes.KeepUser) -> None:
    work.own(write.scope, write.at)


def _merge_user(work: Changes, write: writes.MergeUser) -> None:
    state, owner = work.state, person(write.scope)
    state.owners[owner] = min(moment(write.created_at), state.owners[owner])
    state.chunks[owner] = max(write.last_chunk, state.chunks.get(owner, 0))
    state.extracted[owner] = max(write.extracted, state.extracted.get(owner, 0))


def _record_audit(work: Changes, write: writes.RecordAudit) -> None:
    state, scope = work.state, write.scope
    number, at = state.number("audit"), moment(now() if write.at is None else write.at)
    said = (write.actor, write.action, write.subject)
    state.audit[number] = entry = AuditEntry(number, at, scope.space, scope.user, *said)
    work.index.note_audit(entry)


def _set_extracted(work: Changes, write: writes.SetExtracted) -> None:
    work.state.extracted[person(write.scope)] = write.up_to


def _set_last_chunk(work: Changes, write: writes.SetLastChunk) -> None:
    work.state.chunks[person(write.scope)] = write.chunk


def _archive_messages(work: Changes, write: writes.ArchiveMessages) -> None:
    for seq in write.seqs:
        _set_chunk(work.state, seq, write.chunk)


def _release_messages(work: Changes, write: writes.ReleaseMessages) -> None:
    for seq in in_chunk(work.state, write.scope, write.chunk):
        _set_chunk(work.state, seq, None)


def _hide_messages(work: Changes, write: writes.HideMessages) -> None:
    for seq in write.seqs:
        entry = work.state.log[seq]
        work.state.log[seq] = replace(entry, message=replace(entry.message, replaced=True))


def in_chunk(state: State, scope: Scope, chunk: int) -> list[int]:
    """Return the messages of one of the user's archives."""
    return [seq for seq in state.numbers.owned(person(scope)) if state.log[seq].message.chunk == chunk]


def _set_chunk(state: State, seq: int, chunk: int | None) -> None:
    entry = state.log[seq]
    state.log[seq] = replace(entry, message=replace(entry.message, active=chunk is None, chunk=chunk))


def _describe_session(work: Changes, write: writes.DescribeSession) -> None:
    wanted = write.row.session
    key = work.state.session_names.get(((wanted.space, wanted.thread), wanted.id))
    if key is not None:
        kept = work.state.sessions[key]
        session = replace(kept.session, user=wanted.user, timeout=wanted.timeout)
        work.keep_session(replace(kept, session=session, automatic=write.row.automatic))


def _put_vector(work: Changes, write: writes.PutVector) -> bool:
    state, row = work.state, write.row
    if row.seq not in state.log or (row.embedder, row.seq) in state.vectors:
        return False
    state.vectors[row.embedder, row.seq] = row.value
    state.embedded.setdefault((row.embedder, state.log[row.seq].message.text), row.seq)
    return True


def _add_summary(work: Changes, write: writes.AddSummary) -> int:
    state, summary = work.state, write.summary
    number = state.number("summaries", write.least)
    state.threads.setdefault((summary.space, summary.thread), ())
    state.summaries[number] = stored = replace(summary, id=number)
    work.index.note_summary(stored)
    return number


def _set_summary_state(work: Changes, write: writes.SetSummaryState) -> None:
    new = write.summary
    known = work.state.summaries[new.id]
    work.state.summaries[new.id] = replace(known, active=new.active, replaced=new.replaced, rolled_back=new.rolled_back)


def _add_memory(work: Changes, write: writes.AddMemoryRow) -> int:
    number = work.state.number("memories", write.least)
    work.state.memories[number] = replace(write.memory, id=number)
    return number


def _put_memory(work: Changes, write: writes.PutMemoryRow) -> None:
    state, memory = work.state, write.memory
    state.memories[memory.id] = replace(memory, sources=state.memories[memory.id].sources)
    if memory.text != write.before:
        for embedder, key in [each for each in state.note_vectors if each[1] == NoteKey("memory", memory.id)]:
            del state.note_vectors[embedder, key]


def _add_memory_version(work: Changes, write: writes.AddMemoryVersion) -> None:
    versions, number = work.state.versions, write.version.before.id
    versions[number] = (*versions.get(number, ()), write.version)


def _add_memory_sources(work: Changes, write: writes.AddMemorySources) -> None:
    state, owner = work.state, person(write.scope)
    memory = state.memories[write.memory]
    mine = {seq for seq in write.seqs if seq in state.log and state.log[seq].owner == owner}
    more = sorted(mine.difference(memory.sources))[: max(0, write.most - len(memory.sources))]
    state.memories[memory.id] = replace(memory, sources=tuple(sorted((*memory.sources, *more))))


def _set_successor(work: Changes, write: writes.SetSuccessor) -> None:
    state, number = work.state, write.memory
    if write.revision is None:
        state.memories[number] = replace(state.memories[number], superseded_by=write.by)
    else:
        state.versions[number] = tuple(
            replace(version, before=replace(version.before, superseded_by=write.by))
            if version.before.revision == write.revision
            else version
            for version in state.versions[number]
        )


def _add_facts(work: Changes, write: writes.AddFacts) -> None:
    facts = write.facts
    work.state.facts[(facts.space, facts.user), facts.version] = facts


def _renumber_facts(work: Changes, write: writes.RenumberFacts) -> None:
    facts = write.facts
    owner, next_version = (facts.space, facts.user), facts.version + 1
    del work.state.facts[owner, facts.version]
    work.state.facts[owner, next_version] = replace(facts, version=next_version)


def _add_tombstone(work: Changes, write: writes.AddTombstone) -> None:
    state, owner = work.state, person(write.scope)
    up_to = state.last_of(write.scope) if write.up_to is None else write.up_to
    state.tombstones[owner] = (*state.tombstones.get(owner, ()), Tombstone(write.words, up_to))


def _put_derived(work: Changes, write: writes.PutDerivedText) -> None:
    work.state.derived[person(write.scope), write.kind] = write.derived


def _put_receipt(work: Changes, write: writes.PutReceipt) -> None:
    receipt = write.receipt
    work.state.receipts[(receipt.space, receipt.user), receipt.id] = receipt


def _store_setting(work: Changes, write: writes.StoreSetting) -> None:
    work.state.settings[person(write.scope), write.setting.key] = write.setting


def _remove_setting(work: Changes, write: writes.RemoveSetting) -> None:
    work.state.settings.pop((person(write.scope), write.key), None)


def _set_progress(work: Changes, write: writes.SetProgress) -> None:
    work.state.walks[write.policy] = write.up_to


def _put_entries(work: Changes, write: writes.PutEntries) -> None:
    for entry in write.entries:
        work.state.agenda[entry.subject] = entry


def _add_tokens(work: Changes, write: writes.AddTokens) -> None:
    key = (write.day, None if write.user is None else (write.space, write.user))
    work.state.spending[key] = work.state.spending.get(key, 0) + write.tokens


def _set_mark(work: Changes, write: writes.SetMark) -> None:
    if write.value is None:
        work.state.marks.pop(write.name, None)
    else:
        work.state.marks[write.name] = write.value


WRITES: Final = performers(writes.Write, globals(), vars(erasing))
