"""`bench/eval.py answers`: answers of any model, judged by any other."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer
from rich.text import Text

from aforesaid.cli.options import AsJson, harmless, inform, print_json, progress_bar, say
from aforesaid.domain.checks import counted
from aforesaid.errors import InvalidInput
from aforesaid.profiles import BUILT_IN
from aforesaid.store import Progress
from evaluation.answers import (
    AnswerReport,
    Prices,
    Proportion,
    ResultsFile,
    RunOptions,
    Spent,
    answer_questions,
    choose_model,
    header_of,
    questions_of,
    sum_up,
)
from evaluation.datasets import load_datasets
from evaluation.tables import NOTHING, print_table, table_of

_DEFAULTS: Final = RunOptions()
_STEP: Final = 10
"""Questions between two lines of progress, where standard error is not a terminal."""


def evaluate_answers(
    path: Annotated[Path, typer.Argument(metavar="DATA", help="Labelled conversations, as for `eval recall`.")],
    model: Annotated[
        str,
        typer.Option(
            help="The model that answers: its base URL and its name, or provider:name as in aforesaid.toml. "
            "Example: --model http://localhost:8000/v1/llama3.2"
        ),
    ],
    judge: Annotated[
        str, typer.Option(help="The model that judges, written the same way. Example: --judge openai:gpt-4o-mini")
    ],
    results: Annotated[
        Path,
        typer.Option(help="The file with one line per question. If it exists, the run goes on from there."),
    ] = Path("answers.jsonl"),
    model_key_env: Annotated[
        str | None,
        typer.Option(help="The environment variable with the model's key. Default: the provider's. Example: MY_KEY"),
    ] = None,
    judge_key_env: Annotated[
        str | None, typer.Option(help="The environment variable with the judge's key. Default: the provider's.")
    ] = None,
    budget: Annotated[int, typer.Option("--budget", "-b", min=100, help="Tokens of a context.")] = _DEFAULTS.budget,
    profile: Annotated[str, typer.Option("--profile", "-p", help="A built-in profile.")] = _DEFAULTS.profile,
    newest_only: Annotated[
        bool, typer.Option("--newest-only", help="Give the model the newest messages and nothing else, for comparison.")
    ] = _DEFAULTS.newest_only,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Questions to ask per data set. Default: all. Example: -n 50"),
    ] = None,
    parallel: Annotated[
        int, typer.Option(min=1, max=1_000, help="Questions asked at the same time.")
    ] = _DEFAULTS.parallel,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds for one call of a model, with its retries.")
    ] = _DEFAULTS.timeout,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Maximum tokens of an answer or a verdict.")
    ] = _DEFAULTS.max_tokens,
    model_price: Annotated[
        str | None,
        typer.Option(help="Prices of a million tokens that the model reads and writes. Example: 0.15,0.60"),
    ] = None,
    judge_price: Annotated[str | None, typer.Option(help="The same for the judge. Example: 2.50,10")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model every question with a context of Aforesaid, and have another model judge the answers.

    Any server with OpenAI's API works. A run that was stopped goes on where it was. Example:

        python bench/eval.py answers locomo10.json --model http://localhost:8000/v1/llama3.2 --judge openai:gpt-4o-mini
    """
    if profile not in BUILT_IN:
        raise InvalidInput(f"unknown profile {profile!r}; use {', '.join(BUILT_IN)}")
    prices = _prices("--model-price", model_price), _prices("--judge-price", judge_price)
    models = choose_model(model, model_key_env), choose_model(judge, judge_key_env)
    options = RunOptions(budget, profile, newest_only, parallel, timeout, max_tokens)
    header = header_of(*models, options)
    datasets = load_datasets(path)
    asked = [each for dataset in datasets for each in questions_of(dataset, limit)]
    if not asked:
        raise InvalidInput(f"{path} has no questions with an expected answer, and none about what was never said")
    with ResultsFile(results, header) as file, _progress() as progress:
        if known := sum(each.key in file.results for each in asked):
            inform(f"{results} has results of {counted(known, 'question')} already; going on from there")
        found = anyio.run(answer_questions, datasets, asked, models, options, file, progress)
    report = sum_up(header, str(results), len(asked), found, model_prices=prices[0], judge_prices=prices[1])
    if as_json:
        print_json(report)
    else:
        _show(report)
    if report.failed:
        inform(f"{counted(report.failed, 'question')} without a verdict; run the same command again to retry")


def _prices(option: str, text: str | None) -> Prices | None:
    if text is None:
        return None
    try:
        prompt, reply = (float(part) for part in text.split(","))
    except ValueError:
        prompt = reply = math.nan
    if not (0 <= prompt < math.inf and 0 <= reply < math.inf):
        raise InvalidInput(f"{option} must be two prices for a million tokens, read and written, such as 0.15,0.60")
    return Prices(prompt, reply)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show a progress bar, or lines where standard error is not a terminal."""
    if sys.stderr.isatty():
        with progress_bar("answers", hidden=False) as bar:
            yield bar
        return

    def write(what: str, done: int, total: int) -> None:
        if what == "asking" and (done % _STEP == 0 or done == total):
            inform(f"asked {done:,} of {total:,}")

    yield write


def _show(report: AnswerReport) -> None:
    say(Text.assemble("\n", ("answers", "bold"), (f"  {harmless(report.results)}", "dim")))
    say(f"model: {harmless(report.run.model)}")
    say(f"judge: {harmless(report.run.judge)}")
    say(f"{counted(report.questions, 'question')}, {report.judged:,} judged, {report.failed:,} failed")
    say(f"contexts: {report.context_tokens:,.0f} tokens on average, at most {report.run.budget:,}")
    table = table_of("percent of the questions", "questions", "share", "95% interval")
    for title, proportion in _rows(report):
        table.add_row(harmless(title), *_cells(proportion))
    print_table(table)
    score = NOTHING if report.refusal_score is None else f"{report.refusal_score:.3f}"
    say(f"\nrefusal score (F1 of declining what was never said): {score}")
    table = table_of("per question", "tokens read", "tokens written", "cost", "cost of all")
    for title, spent in (("model", report.model), ("judge", report.judge)):
        table.add_row(title, *_spent_cells(spent))
    print_table(table)


def _rows(report: AnswerReport) -> Iterator[tuple[str, Proportion]]:
    yield "right", report.right
    yield "right, of what was said", report.answered
    yield "  with all evidence in the context", report.with_evidence
    yield "  with less", report.without_evidence
    yield "declined, of what was never said", report.declined
    yield "declined, although it was said", report.wrongly_declined
    for title, groups in (
        ("data: ", report.formats if len(report.formats) > 1 else {}),
        ("question: ", report.categories),
        ("language: ", report.languages),
        ("chat: ", report.kinds),
    ):
        for name, proportion in groups.items():
            yield f"right, {title}{name}", proportion


def _cells(proportion: Proportion) -> tuple[str, str, str]:
    if proportion.share is None:
        return "0", NOTHING, NOTHING
    interval = f"{100 * proportion.low:.1f} to {100 * proportion.high:.1f}"
    return f"{proportion.questions:,}", f"{100 * proportion.share:.1f}", interval


def _spent_cells(spent: Spent) -> tuple[str, str, str, str]:
    cost = NOTHING if spent.cost is None else f"{spent.cost:.6f}"
    total = NOTHING if spent.total_cost is None else f"{spent.total_cost:.4f}"
    return f"{spent.prompt_tokens:,.0f}", f"{spent.reply_tokens:,.0f}", cost, total
