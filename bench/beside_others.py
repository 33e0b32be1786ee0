"""`make bench-peers`: Aforesaid, other memories and search engines on this machine, with the same data and vectors."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from measuring import heading
from measuring import row as line
from peers import prepare
from peers.contract import About
from peers.registry import EVERYBODY, about_peer, installed, interpreter
from reports.machine import machine
from reports.peers import table, write_page, write_results

from aforesaid.models.embed import Embedder, choose_embedder

DRIVER = Path(__file__).parent / "peers" / "drive.py"
OWN = Path(__file__).parent / "conversations"
SYNCED = 50
Results = dict[str, Any]


def environment() -> dict[str, str]:
    """Return the environment of a measured process: no telemetry, one computing thread."""
    quiet = {
        "MEM0_TELEMETRY": "False",
        "POSTHOG_DISABLED": "1",
        "ANONYMIZED_TELEMETRY": "False",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "LANCE_LOG": "error",
        "LANGSMITH_TRACING": "false",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    return {**os.environ, **quiet}


def drive(task: str, key: str, folder: Path, prepared: Path, *rest: object, prefix: tuple[str, ...] = ()) -> Results:
    """Run one task in a new process, and return its first line of output."""
    command = [*prefix, interpreter(key), str(DRIVER), task, key, str(folder), str(prepared), *map(str, rest)]
    ran = subprocess.run(  # noqa: S603 - the project's own program
        command, env=environment(), capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        return {"failed": (ran.stderr.strip().splitlines() or ["no message"])[-1][:300]}
    found: Results = json.loads(next(each for each in ran.stdout.splitlines() if each.startswith("{")))
    return found


def cold_start(key: str, folder: Path, prepared: Path, rounds: int) -> float | None:
    """Return the median time from starting a process to its first answer, in milliseconds."""
    taken = []
    for _ in range(rounds):
        command = [interpreter(key), str(DRIVER), "cold", key, str(folder), str(prepared)]
        start = time.perf_counter()
        with subprocess.Popen(  # noqa: S603
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            answered = any(each.startswith("{") for each in iter(process.stdout.readline, ""))
            taken.append((time.perf_counter() - start) * 1000)
        if not answered or process.returncode != 0:
            return None
    return statistics.median(taken)


def import_times(abouts: list[About], rounds: int) -> dict[str, float]:
    """Return the import time of each library in milliseconds, without Python's own start, measured in turns."""
    programs = {"": "pass"} | {about.key: about.imports for about in abouts}
    taken: dict[str, list[float]] = {key: [] for key in programs}
    for _ in range(rounds):
        for key, program in programs.items():
            start = time.perf_counter()
            command = [interpreter(key), "-c", program]
            subprocess.run(command, env=environment(), check=True, stderr=subprocess.DEVNULL)  # noqa: S603
            taken[key].append((time.perf_counter() - start) * 1000)
    alone = statistics.median(taken.pop(""))
    return {key: statistics.median(times) - alone for key, times in taken.items()}


def syncs_per_add(key: str, folder: Path, prepared: Path) -> float | None:
    """Return the number of disk syncs per single add; None without strace."""
    if shutil.which("strace") is None:
        return None
    counts = []
    # The first add may create files. Few adds to subtract: syncs in the background differ from run to run.
    for added in (1, 1 + SYNCED):
        home, log = folder / str(added), folder / f"{added}.txt"
        home.mkdir(parents=True)
        trace = ("strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,msync", "-o", str(log))
        if "failed" in drive("syncs", key, home, prepared, added, prefix=trace):
            return None
        lines = log.read_text(encoding="utf-8").splitlines()
        counts.append(sum("sync" in each and "resumed" not in each for each in lines))
    return (counts[1] - counts[0]) / SYNCED


def measure(about: About, folder: Path, options: argparse.Namespace) -> Results:
    """Measure one library at every size."""
    result: Results = {"name": about.name, "how": about.how, "context_is": about.context, "speed": {}}
    result["memory"] = about.memory
    result |= {name: getattr(about, name) for name in ("no_run", "no_disk", "no_search", "no_context")}
    if about.no_run is not None:
        return result
    spoken = folder / "talk"
    for size in options.sizes:
        home = folder / f"{about.key}-{size}"
        home.mkdir()
        found = drive("speed", about.key, home, spoken, size, options.seconds, options.calls)
        if about.no_disk is None and "over" not in found and "failed" not in found:
            found["cold_ms"] = cold_start(about.key, home, spoken, options.rounds)
        result["speed"][str(size)] = found
        line(f"{about.name}, {size:,}", json.dumps(found, default=str)[:400])
        shutil.rmtree(home)
        if "over" in found:
            break
    result["syncs"] = None if about.no_disk else syncs_per_add(about.key, folder / f"{about.key}-syncs", spoken)
    return result


async def prepare_all(folder: Path, options: argparse.Namespace, embedder: Embedder) -> list[Results]:
    """Prepare the shared data; return the labelled sets, each with its size or the reason why it is left out."""
    await prepare.talk(folder / "talk", max(options.sizes), embedder, options.embedded)
    described: list[Results] = []
    for each in prepare.labelled_sets(options.data, options.own):
        size: Results = {"left_out": each.left_out}
        if each.dataset is not None:
            size = dict(await prepare.labelled(folder / each.key, each.dataset, embedder, options.questions))
        described.append({"key": each.key, "title": each.title, **size})
    return described


def ask_labelled(about: About, folder: Path, labelled: Results, seconds: float) -> Results | None:
    """Measure recall with the text alone and with the speaker before it; the better one counts."""
    if about.no_search is not None:
        return None
    # Libraries with a field for the speaker get the speaker there.
    variants = ("text",) if about.key == "aforesaid" else ("text", "speaker")
    found = {}
    for variant in variants:
        home = folder / f"{about.key}-recall-{variant}"
        home.mkdir()
        found[variant] = drive("recall", about.key, home, folder / labelled["key"], variant, seconds)
        line(f"{about.name}, {labelled['title']}, {variant}", json.dumps(found[variant]))
        shutil.rmtree(home)
    return found


async def run(options: argparse.Namespace) -> Results:
    """Measure every installed library."""
    abouts = [about_peer(key) for key in options.only or EVERYBODY]
    versions = {each.key: installed(each) for each in abouts}
    heading("Beside others")
    for each in abouts:
        line(each.name, versions[each.key] or "not installed")
    there = [each for each in abouts if versions[each.key] is not None]
    embedder = choose_embedder(options.embedder)
    assert embedder is not None, "those who search by meaning need vectors"
    # On a real disk: a temporary folder may be in memory, where a sync costs nothing.
    with tempfile.TemporaryDirectory(prefix="aforesaid-peers-", dir=options.folder) as place:
        folder = Path(place)
        # The database server of one of them does not run as root: another user must get into the folder.
        os.chmod(place, 0o755)  # noqa: PTH101, S103 - nothing in it is secret
        labelled = await prepare_all(folder, options, embedder)
        await embedder.close()
        found: dict[str, Results] = {}
        results: Results = {
            "machine": machine(),
            "embedder": embedder.name,
            "sizes": options.sizes,
            "seconds": options.seconds,
            "labelled": labelled,
            "peers": found,
        }
        imports = import_times(there, options.rounds)
        for each in there:
            found[each.key] = measure(each, folder, options)
            found[each.key] |= {"version": versions[each.key], "import_ms": imports[each.key]}
            write_results(options.results, results)
        for each, data in product(there, [data for data in labelled if "left_out" not in data]):
            asked = ask_labelled(each, folder, data, options.recall_seconds)
            found[each.key].setdefault("recall", {})[data["key"]] = asked
            write_results(options.results, results)
    return results


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--seconds", type=float, default=120, help="maximum seconds to fill a memory, and to query it")
    parser.add_argument(
        "--recall-seconds", type=float, default=600, help="maximum seconds to store and ask labelled turns"
    )
    parser.add_argument("--calls", type=int, default=200, help="number of single adds, searches and contexts")
    parser.add_argument("--rounds", type=int, default=5, help="number of imports and cold starts")
    parser.add_argument("--data", type=Path, help="folder with LoCoMo, to measure recall on it too")
    parser.add_argument("--own", type=Path, default=OWN, help="labelled transcripts, to measure recall")
    parser.add_argument("--questions", type=int, help="maximum questions per conversation")
    parser.add_argument("--only", nargs="+", choices=EVERYBODY)
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--embedded", type=int, default=prepare.REAL, help="number of texts embedded by a real model")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="folder for the databases, on a real disk")
    parser.add_argument("--results", type=Path, default=Path("bench/results"), help="folder for figures and charts")
    parser.add_argument("--again", type=Path, help="measure nothing; rewrite tables and charts from this file")
    parser.add_argument("--page", type=Path, help="documentation page to update with tables and charts")
    return parser.parse_args()


def main() -> None:
    """Measure, and write the results."""
    options = arguments()
    if options.again is None:
        results = asyncio.run(run(options))
    else:
        results = json.loads(options.again.read_text(encoding="utf-8"))
    write_results(options.results, results)
    print(f"\n{table(results)}\n\nwrote {options.results}")
    if options.page is not None:
        write_page(options.page, results)


if __name__ == "__main__":
    main()
