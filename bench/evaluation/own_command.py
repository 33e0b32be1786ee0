"""`bench/eval.py own`: the benchmark on labelled transcripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, NamedTuple, cast

import anyio
import typer
from rich.text import Text

from aforesaid.cli.options import AsJson, harmless, print_json, progress_bar, say
from aforesaid.domain.checks import counted
from aforesaid.errors import InvalidInput
from evaluation.contexts import BUDGETS, Contained
from evaluation.metrics import Score
from evaluation.own import PARTS, PROFILE, OwnReport, Part, load_transcripts, measure_own
from evaluation.report import Figures, NeverSaid, RankingReport
from evaluation.tables import NOTHING, percent, print_table, show_facts, table_of

FOLDER: Final = Path("bench/conversations")
"""The conversations of the repository, measured if no folder is given."""


def evaluate_own(
    path: Annotated[
        Path,
        typer.Argument(help="A file or folder with labelled transcripts. Default: those of the repository."),
    ] = FOLDER,
    parts: Annotated[
        str, typer.Option("--parts", help="What to measure, separated by commas. Example: --parts recall,facts")
    ] = ",".join(PARTS),
    only: Annotated[
        Path | None,
        typer.Option(
            help="Measure only the transcripts whose ids a file lists. Example: bench/conversations/test-part.txt"
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Questions to ask. Default: all. Example: -n 200"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the benchmark on labelled transcripts: recall, contexts, facts, and what was never said. No model is needed.

    Prints recall and the evidence inside contexts by language, kind of chat and kind of question. Example:

        python bench/eval.py own bench/conversations --only bench/conversations/test-part.txt
    """
    chosen = _parts(parts)
    transcripts = load_transcripts(path, None if only is None else read_ids(only), limit)
    with progress_bar("transcripts", hidden=False) as progress:
        report = anyio.run(measure_own, transcripts, chosen, progress)
    if as_json:
        print_json(report)
    else:
        _show(report)


def read_ids(path: Path) -> set[str]:
    """Return the ids that a file lists, one in a line. Raises InvalidInput if there are none."""
    try:
        ids = set(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as a list of ids: {error}") from None
    if not ids:
        raise InvalidInput(f"{path} lists no ids; write one in a line")
    return ids


def _parts(text: str) -> list[Part]:
    wanted = {word.strip() for word in text.split(",") if word.strip()}
    if not wanted or wanted.difference(PARTS):
        raise InvalidInput(f"unknown parts {text!r}; use one or more of {', '.join(PARTS)}, separated by commas")
    return cast("list[Part]", [part for part in PARTS if part in wanted])


def _show(report: OwnReport) -> None:
    say(Text.assemble("\n", ("transcripts", "bold"), (f"  {harmless(report.path)}", "dim")))
    say(f"{counted(report.conversations, 'conversation')}, {counted(report.turns, 'turn')}")
    if report.trained_on:
        say(f"trained on: {report.trained_on:,} of these, so figures are too high; --only {FOLDER}/test-part.txt")
    if report.recall is not None:
        say(f"embedder: {harmless(report.recall.embedder)}")
    _show_evidence(report)
    ranking = None if report.recall is None else report.recall.rankings[-1]
    if ranking is not None and ranking.never_said is not None:
        _show_never_said(ranking.never_said)
    if report.facts is not None:
        show_facts(report.facts)


def _show_evidence(report: OwnReport) -> None:
    """Print the share of the evidence that searches and contexts contain, by group."""
    keyword, complete = (None, None) if report.recall is None else report.recall.rankings
    contexts = [] if report.contexts is None else [each for each in report.contexts.ways if each.way == PROFILE]
    columns = [*(f"{budget:,}" for budget in BUDGETS)] if contexts else []
    found = ["questions", "R@1", "R@5", "R@10", "keyword\nR@10"] if complete else []
    if not found and not columns:
        return
    say("percent of the evidence among the first hits (R@k), and inside contexts of so many tokens")
    table = table_of("evidence", *found, *columns)
    for group in _groups(complete, contexts):
        plain = None if keyword is None else _of(keyword, group)
        table.add_row(
            harmless(group.title),
            *(_recall_cells(_of(complete, group), plain) if complete else ()),
            *(_share(each, group) for each in contexts),
            end_section=group.is_last,
        )
    print_table(table)


class _Group(NamedTuple):
    """A row: all questions, or those of one language, kind of chat, or kind of question."""

    title: str
    field: str = ""
    name: str = ""
    is_last: bool = False


def _groups(ranking: RankingReport | None, contexts: list[Contained]) -> Iterator[_Group]:
    yield _Group("all", is_last=True)
    for field, title in (("languages", ""), ("kinds", "chat: "), ("categories", "question: ")):
        if ranking is None:
            names = list(getattr(contexts[0], field))
        elif field == "categories":
            names = [each.category for each in ranking.categories]
        else:
            names = list(getattr(ranking, field))
        for number, name in enumerate(names, 1):
            yield _Group(title + name, field, name, number == len(names))


def _of(ranking: RankingReport, group: _Group) -> Figures:
    if not group.field:
        return ranking.overall
    if group.field == "categories":
        return next(each.figures for each in ranking.categories if each.category == group.name)
    return cast("Figures", getattr(ranking, group.field)[group.name])


def _share(contained: Contained, group: _Group) -> str:
    share = getattr(contained, group.field).get(group.name) if group.field else contained.share
    return NOTHING if share is None else f"{share:.1f}"


def _recall_cells(figures: Figures, keyword: Figures | None) -> list[str]:
    def at_10(score: Score | None) -> float | None:
        return None if score is None else score.recall_at_10

    turns = figures.by_turn
    shares = (None, None) if turns is None else (turns.recall_at_1, turns.recall_at_5)
    plain = None if keyword is None else at_10(keyword.by_turn)
    return [f"{figures.questions_by_turn:,}", *map(percent, (*shares, at_10(turns), plain))]


def _show_never_said(never_said: NeverSaid) -> None:
    say("")
    say(f"{counted(never_said.questions, 'question')} about what was never said:")
    say(f"  a search finds nothing, as it should: {percent(never_said.nothing_found)}%")
    say(f"  a search finds nothing, although it was said: {percent(never_said.wrongly_nothing_found)}%")
    told_apart = NOTHING if never_said.told_apart is None else f"{never_said.told_apart:.3f}"
    say(f"  told apart by the best score (area under the curve; 0.5 is chance): {told_apart}")
