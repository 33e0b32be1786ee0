"""`bench/eval.py`: measure recall, contexts, summaries and memories on labelled data sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from aforesaid.cli.command_line import Commands
from aforesaid.cli.options import AsJson, harmless, print_json, progress_bar, say
from aforesaid.domain.checks import counted
from aforesaid.errors import InvalidInput
from aforesaid.profiles import BUILT_IN
from evaluation import (
    ARMS,
    Dataset,
    DatasetReport,
    Ranking,
    Score,
    load_datasets,
    measure,
    sample,
)
from evaluation.answers_command import evaluate_answers
from evaluation.contexts import BUDGETS, ContextReport, measure_contexts
from evaluation.memories import (
    FactTranscript,
    load_cases,
    load_fact_transcripts,
    measure_facts,
    measure_memories,
)
from evaluation.own_command import evaluate_own, read_ids
from evaluation.speed_command import bench
from evaluation.summaries import Figures, SummaryReport, load_chats, measure_summaries
from evaluation.tables import NOTHING, number, percent, print_table, show_facts, show_memories, table_of

_RECALL: Final = "recall"


class _Evaluations(Commands):
    """The subcommands. `PATH` alone means `recall PATH`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as typer has it
        """Insert `recall` when no subcommand is given."""
        known = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if args[:1] and args[0] in known else [_RECALL, *args])


commands = typer.Typer(
    cls=_Evaluations,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    subcommand_metavar="[recall] PATH | contexts PATH | summaries PATH | memories PATH | own | answers DATA | speed",
    help="Measure recall, contexts, summaries, memories or answers on labelled conversations. `bench/eval.py PATH` "
    "measures recall.",
)


@commands.command(_RECALL)
def evaluate(
    path: Annotated[
        Path,
        typer.Argument(
            help="A data set, as published: a file or folder of LoCoMo, LongMemEval, BEAM, REALTALK, HaluMem, "
            "FriendsQA or MemDaily."
        ),
    ],
    arms: Annotated[
        str,
        typer.Option(
            "--arms", help="Rankings to measure, separated by commas: keyword, dense, all. Example: --arms all"
        ),
    ] = ",".join(ARMS),
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", help="Also measure a baseline: like (SQL LIKE). Default: none. Example: --baseline like"
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Questions to ask per data set. Default: all. Example: -n 50"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure recall on conversations with labelled questions.

    Loads each data set into a temporary store, searches for every question with every ranking, and compares the hits
    with the labels. Example:

        python bench/eval.py locomo10.json --baseline like
    """
    rankings = _rankings(arms, baseline)
    datasets = [dataset if limit is None else sample(dataset, limit) for dataset in load_datasets(path)]
    reports = []
    for dataset in datasets:
        report = _measure(dataset, rankings)
        reports.append(report)
        if not as_json:
            _show(report)
    if as_json:
        print_json({"data_sets": reports})


@commands.command("summaries")
def evaluate_summaries(
    path: Annotated[
        Path, typer.Argument(help="A data set, as published: a file or folder of DialogSum, SAMSum, QMSum or LoCoMo.")
    ],
    words: Annotated[
        int | None,
        typer.Option(
            "--words", "-w", min=1, help="Words per summary. Default: a share of the chat's length. Example: -w 60"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure summaries made without a model, on chats with reference summaries or facts.

    Compares the method used without a model with simple baselines of the same length. Example:

        python bench/eval.py summaries samsum.json
    """
    reports = []
    for chats in load_chats(path):
        with progress_bar(chats.format, hidden=False) as progress:
            report = measure_summaries(chats, words, progress)
        reports.append(report)
        if not as_json:
            _show_summaries(report)
    if as_json:
        print_json({"data_sets": reports})


@commands.command("memories")
def evaluate_memories(
    path: Annotated[
        Path,
        typer.Argument(
            help="A data set, as published: a file or folder of LoCoMo, MemDaily, texts with typed memories, or "
            "transcripts with facts."
        ),
    ],
    sample: Annotated[
        int,
        typer.Option("--sample", "-n", min=0, help="Memories to print next to their source messages. Example: -n 20"),
    ] = 0,
    recall: Annotated[bool, typer.Option(help="Also measure recall on the memories alone.")] = True,
    only: Annotated[
        Path | None,
        typer.Option(
            help="Measure only the transcripts whose ids a file lists. Example: bench/conversations/test-part.txt"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the memories that are extracted without a model, on data sets with labelled facts.

    Loads each data set into a temporary store. Example:

        python bench/eval.py memories locomo10.json --sample 20
    """
    transcripts = _transcripts(path, only)
    facts = []
    if transcripts:
        with progress_bar("transcripts", hidden=False) as progress:
            facts.append(anyio.run(partial(measure_facts, path, transcripts, progress, samples=sample)))
    reports = []
    for cases in [] if transcripts else load_cases(path):
        with progress_bar(cases.format, hidden=False) as progress:
            measuring = partial(measure_memories, cases, progress, samples=sample, recall=recall)
            reports.append(anyio.run(measuring))
    if as_json:
        print_json({"data_sets": [*facts, *reports]})
        return
    for report in facts:
        show_facts(report)
    if reports:
        show_memories(reports)


def _transcripts(path: Path, only: Path | None) -> list[FactTranscript]:
    """Return the transcripts with facts in a file or folder, all or those that a file lists."""
    found = load_fact_transcripts(path)
    if only is None:
        return found
    wanted = read_ids(only)
    chosen = [each for each in found if each.id in wanted]
    if not chosen:
        raise InvalidInput(f"{path} has no transcript whose id is in {only}; list one id in a line")
    return chosen


commands.command("own")(evaluate_own)
commands.command("answers")(evaluate_answers)
commands.command("speed")(bench)


@commands.command("contexts")
def evaluate_contexts(
    path: Annotated[Path, typer.Argument(help="A data set with labelled turns, as for `eval recall`.")],
    profiles: Annotated[
        str, typer.Option("--profiles", help="Profiles to measure, separated by commas. Example: default,archive")
    ] = ",".join(BUILT_IN),
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Questions to ask per data set. Default: all. Example: -n 50"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how often a context contains the evidence for its question, at four token budgets.

    Two baselines are measured too: the newest messages only, and the most similar chunks only. Example:

        python bench/eval.py contexts locomo10.json --profiles default,archive
    """
    chosen = [name.strip() for name in profiles.split(",") if name.strip()]
    if unknown := sorted(set(chosen).difference(BUILT_IN)):
        raise InvalidInput(f"unknown profile {unknown[0]!r}; use {', '.join(BUILT_IN)}")
    reports = []
    for found in load_datasets(path):
        dataset = found if limit is None else sample(found, limit)
        with progress_bar(dataset.format, hidden=False) as progress:
            report = anyio.run(measure_contexts, dataset, chosen, progress)
        reports.append(report)
        if not as_json:
            _show_contexts(report)
    if as_json:
        print_json({"data_sets": reports})


def _show_contexts(report: ContextReport) -> None:
    say(Text.assemble("\n", (report.format, "bold"), (f"  {harmless(report.path)}", "dim")))
    say(f"{counted(report.questions, 'question')} with labelled turns; tokens counted by {report.tokens}")
    say("percent of questions with all their evidence in the context; below: percent of the evidence")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for budget in BUDGETS:
        table.add_column(f"{budget:,}", justify="right")
    table.add_column("ms", justify="right")
    for way in dict.fromkeys(each.way for each in report.ways):
        rows = [each for each in report.ways if each.way == way]
        slowest = max(each.milliseconds for each in rows)
        table.add_row(way, *(f"{each.all:.1f}" for each in rows), f"{slowest:.1f}")
        table.add_row("", *(Text(f"{each.share:.1f}", style="dim") for each in rows), "")
    say(table)


def _rankings(arms: str, baseline: str | None) -> list[Ranking]:
    if baseline not in (None, "like"):
        raise InvalidInput(f"unknown baseline {baseline!r}; use: like")
    wanted = {word.strip() for word in arms.split(",") if word.strip()}
    unknown = sorted(wanted.difference(ARMS))
    if unknown or not wanted:
        raise InvalidInput(f"unknown arms {arms!r}; use one or more of {', '.join(ARMS)}, separated by commas")
    chosen: list[Ranking] = [arm for arm in ARMS if arm in wanted]
    return ["like", *chosen] if baseline else chosen


def _measure(dataset: Dataset, rankings: Sequence[Ranking]) -> DatasetReport:
    with progress_bar(dataset.format, hidden=False) as progress:
        return anyio.run(measure, dataset, rankings, progress)


def _show(report: DatasetReport) -> None:
    say(Text.assemble("\n", (report.format, "bold"), (f"  {harmless(report.path)}", "dim")))
    sizes = (report.conversations, "conversation"), (report.turns, "turn"), (report.questions, "question")
    say(", ".join(counted(number, noun) for number, noun in sizes) + " asked")
    say(_denominator(report))
    for count in report.left_out:
        say(f"left out: {count.what} ({count.number:,})")
    for count in report.mended:
        say(f"corrected: {count.what} ({count.number:,})")
    say(f"embedder: {harmless(report.embedder)}")
    _show_turns(report)
    _show_sessions(report)
    _show_categories(report)


def _show_summaries(report: SummaryReport) -> None:
    say(Text.assemble("\n", (report.format, "bold"), (f"  {harmless(report.path)}", "dim")))
    facts = f", {counted(report.facts, 'fact')}" if report.facts else ""
    say(f"{counted(report.chats, 'chat')}, {counted(report.turns, 'turn')}{facts}")
    say(f"length of a summary: {report.room:.0f} words on average, the same for every method")
    for count in report.left_out:
        say(f"left out: {count.what} ({count.number:,})")
    table = table_of("summaries", "R-1", "R-2", "R-L", "facts", "small\ntalk", "words")
    for figures in report.methods:
        table.add_row(figures.method, *_summary_cells(figures))
    print_table(table)


def _summary_cells(figures: Figures) -> list[str]:
    shares = (figures.rouge_1, figures.rouge_2, figures.rouge_l, figures.facts_covered, figures.small_talk)
    return [*map(percent, shares), number(figures.words, 0)]


def _denominator(report: DatasetReport) -> str:
    overall = report.rankings[0].overall
    text = f"in the denominator: {counted(overall.questions_by_turn, 'question')} with labelled turns"
    if overall.questions_by_session != overall.questions_by_turn:
        text += f"; {overall.questions_by_session:,} with labelled sessions"
    return text + (f"; reported separately: {report.apart:,}" if report.apart else "")


def _show_turns(report: DatasetReport) -> None:
    table = table_of(
        "turns", *(f"R@{k}" for k in (1, 3, 5, 10, 20)), "sess.\nR@5", "any\n@5", "all\n@5", "MRR", "NDCG\n@10"
    )
    table.add_column("p50\nms", justify="right")
    table.add_column("p95\nms", justify="right")
    for ranking in report.rankings:
        recall, rest = _cells(ranking.overall.by_turn)
        sessions = ranking.overall.by_session
        table.add_row(
            ranking.ranking,
            *recall,
            percent(None if sessions is None else sessions.recall_at_5),
            *rest,
            number(ranking.p50_ms, 1),
            number(ranking.p95_ms, 1),
        )
    print_table(table)


def _show_sessions(report: DatasetReport) -> None:
    table = table_of("sessions", *(f"R@{k}" for k in (1, 3, 5, 10, 20)), "any\n@5", "all\n@5", "MRR", "NDCG\n@10")
    for ranking in report.rankings:
        recall, rest = _cells(ranking.overall.by_session)
        table.add_row(ranking.ranking, *recall, *rest)
    print_table(table)


def _show_categories(report: DatasetReport) -> None:
    names = [ranking.ranking for ranking in report.rankings]
    table = table_of("turn R@10 by category", "questions", *names)
    for categories in zip(*(ranking.categories for ranking in report.rankings), strict=True):
        first = categories[0]
        table.add_row(
            harmless(first.category) + (" (apart)" if first.apart else ""),
            f"{first.figures.questions_by_turn:,}",
            *(percent(None if (turns := each.figures.by_turn) is None else turns.recall_at_10) for each in categories),
        )
    print_table(table)


def _cells(score: Score | None) -> tuple[list[str], list[str]]:
    """Return recall, and the rest."""
    if score is None:
        return [NOTHING] * 5, [NOTHING] * 4
    recall = (score.recall_at_1, score.recall_at_3, score.recall_at_5, score.recall_at_10, score.recall_at_20)
    return (
        [percent(share) for share in recall],
        [percent(score.any_at_5), percent(score.all_at_5), number(score.mrr, 3), number(score.ndcg_at_10, 3)],
    )
