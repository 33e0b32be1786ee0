"""Run frameworks' own tests of their memories against Aforesaid's.

    python tools/framework_tests.py FOLDER [SUITE …]

Downloads the source distribution of each installed framework into FOLDER, and runs the tests below with the framework's
class replaced by one that uses Aforesaid (`tools/framework_substitutes.py`). Nothing of a framework is part of this
repository. Tests are left out only for the reason given here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

TOOLS: Final = Path(__file__).parent

THEIR_SQL: Final = "looks into the tables, connections or locks of the framework's own SQLite code"
THEIR_DISK: Final = "looks into, or prepares, a folder on disk, which Aforesaid does not have"


@dataclass(frozen=True, slots=True)
class Suite:
    """Test files of a framework, and the tests in them that are left out."""

    distribution: str
    files: tuple[str, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    """Reasons by the name of a test, or of a test with its parameters."""
    options: tuple[str, ...] = ()


SUITES: Final = {
    "openai-agents": Suite(
        "openai-agents",
        ("tests/memory/test_session.py", "tests/memory/test_session_limit.py"),
        {
            "test_sqlite_session_close_closes_worker_thread_connections": THEIR_SQL,
            "test_sqlite_session_closed_rejects_empty_add_items": "asserts an error text with the name of their class",
            "test_sqlite_session_pop_item_skips_corrupt_most_recent": THEIR_SQL,
            "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": THEIR_SQL,
            "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": THEIR_SQL,
            "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": THEIR_SQL,
            "test_sqlite_session_file_lock_is_shared_across_instances": THEIR_SQL,
            "test_sqlite_session_failed_add_items_releases_write_lock": THEIR_SQL,
            "test_sqlite_session_reaps_connections_from_exited_worker_threads": THEIR_SQL,
            "test_sqlite_session_closes_retired_connections_before_the_next_allocation": THEIR_SQL,
            "test_sqlite_session_keeps_connections_of_live_worker_threads": THEIR_SQL,
            "test_sqlite_session_failed_clear_session_rolls_back": THEIR_SQL,
            "test_sqlite_session_failed_pop_item_releases_write_lock": THEIR_SQL,
            "test_sqlite_session_rollback_failure_evicts_connection": THEIR_SQL,
            "test_sqlite_session_close_retries_quarantined_connection": THEIR_SQL,
            "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": THEIR_SQL,
        },
    ),
    "langgraph": Suite("langgraph-checkpoint", ("tests/test_store.py",)),
    "langgraph-sqlite": Suite(
        "langgraph-checkpoint-sqlite",
        ("tests/test_store.py", "tests/test_async_store.py"),
        {
            "test_vector_store_initialization": THEIR_SQL,
            "test_nonnull_migrations": THEIR_SQL,
            "test_escape_glob_literal": THEIR_SQL,
            "test_namespace_match_pattern": THEIR_SQL,
            "test_list_namespaces_prefix_uses_indexable_condition": THEIR_SQL,
        },
    ),
    "anthropic": Suite(
        "anthropic",
        ("tests/lib/tools/memory_tools/test_filesystem.py",),
        {
            "test_mkdir_parents_not_world_writable_under_permissive_umask": THEIR_DISK,
            "test_view_error_for_files_with_too_many_lines": "stores a file of a million lines; a document has 1 MiB",
            "test_view_preserves_crlf_line_endings": THEIR_DISK,
            "test_str_replace_preserves_crlf_line_endings": THEIR_DISK,
            "test_insert_preserves_crlf_line_endings": THEIR_DISK,
            "test_symlink_validation_reject_symlink_pointing_outside_memories": THEIR_DISK,
            "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside": THEIR_DISK,
            "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside": THEIR_DISK,
            "test_delete_not_allow_deleting_memories_directory": THEIR_DISK,
            "test_validate_path_returns_resolved_path_not_symlink_target": THEIR_DISK,
        },
        options=("--noconftest", "-o", "addopts=", "-o", "asyncio_mode=auto"),
    ),
}


def main() -> int:
    """Run the suites that are named, or all whose framework is installed; return the number of those that failed."""
    folder = Path(sys.argv[1]).resolve()
    failed = 0
    for name in sys.argv[2:] or SUITES:
        suite = SUITES[name]
        try:
            source = downloaded(suite.distribution, version(suite.distribution), folder)
        except PackageNotFoundError:
            print(f"{name}: left out, because {suite.distribution} is not installed")
            continue
        print(f"{name}: tests of {source.name}")
        for test, reason in suite.left_out.items():
            print(f"  left out: {test}: {reason}")
        failed += run(name, suite, source) != 0
    return failed


def downloaded(distribution: str, number: str, folder: Path) -> Path:
    """Return the folder of a source distribution, downloading it if it is not there."""
    name = f"{distribution.replace('-', '_')}-{number}"
    if not (folder / name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*command, "--dest", str(folder), f"{distribution}=={number}"], check=True)  # noqa: S603
        with tarfile.open(folder / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return folder / name


def run(name: str, suite: Suite, source: Path) -> int:
    """Run one suite; return the exit status of pytest."""
    # The framework's sources are installed: those in the folder would hide them.
    paths = [str(TOOLS), str(source)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "framework_substitutes", *suite.options, *suite.files]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), *paths]),
        "AFORESAID_EMBEDDER": "deterministic",
        "FRAMEWORK_SUITE": name,
        "FRAMEWORK_LEFT_OUT": "\n".join(suite.left_out),
    }
    return subprocess.run(command, cwd=source, env=environment, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    raise SystemExit(main())
