"""What each kind of change means, written once for all stores.

A change is a value of `aforesaid.domain.change`. `RULES` names its rule: a generator that yields questions and writes
(`driving`). A change that is not named there is one that each kind of store carries out in its own way, because that is
much faster: appending messages and storing vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aforesaid.domain import change, memory, summary, transfer
from aforesaid.domain.change import Discard, PutMark
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import Facts
from aforesaid.domain.report import AuditEntry
from aforesaid.domain.transfer import Restore, Restored, as_expected
from aforesaid.store.rules import known, summaries
from aforesaid.store.rules.purging import discard, set_aside, withdraw
from aforesaid.store.rules.writes import Rule

_ROWS: Final[Mapping[type, Callable[[Any], Rule[Restored]]]] = {
    transfer.SessionRow: known.restore_session,
    transfer.SummaryRow: summaries.restore,
    transfer.MemoryRow: known.restore,
    transfer.SuccessorRow: known.restore_successor,
    Facts: known.restore_facts,
    transfer.ForgottenRow: known.restore_forgotten,
    transfer.SettingRow: known.restore_setting,
    transfer.UserRow: known.restore_user,
    transfer.DayRow: known.restore_day,
    transfer.SpendingRow: known.restore_spending,
    ContextReceipt: known.restore_receipt,
    AuditEntry: known.restore_audit,
    transfer.VectorOf: known.restore_vector,
}
"""The rule for each kind of row of a dump but messages, which are appended."""


def _restore(step: Restore) -> Rule[Restored]:
    return as_expected(step, (yield from _ROWS[type(step.row)](step.row)))


RULES: Final[Mapping[type, Callable[[Any], Rule[Any]]]] = {
    change.Withdraw: withdraw,
    change.SetAside: set_aside,
    change.Archive: summaries.archive,
    change.RollBack: summaries.roll_back,
    summary.AddView: summaries.add_view,
    summary.Revise: summaries.revise,
    summary.Advance: known.advance,
    summary.FinishEntry: known.finish_entry,
    memory.AddMemory: known.add,
    memory.ChangeMemory: known.change,
    memory.CountMemory: known.count,
    memory.Forget: known.forget,
    memory.PutDerived: known.put_derived,
    memory.MarkExtracted: known.mark_extracted,
    memory.AuditAccess: known.audit_access,
    change.PutFacts: known.put_facts,
    change.PutSetting: known.put_setting,
    change.Spend: known.spend,
    change.KeepReceipt: known.keep_receipt,
    Discard: discard,
    PutMark: known.put_mark,
    Restore: _restore,
}
