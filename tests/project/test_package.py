"""The package as a whole: what it shows, what it costs to import, what must agree."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from importlib import import_module
from inspect import ismodule
from pathlib import Path
from pkgutil import iter_modules, walk_packages

import pytest

import aforesaid
import ordering
from aforesaid import errors
from aforesaid import store as stores
from aforesaid.extras import LazyPattern

ROOT = Path(__file__).parent.parent.parent
MIGRATIONS = {
    "0001_the_log.sql": "00bc2386b60d657c",
    "0002_vectors.sql": "9eb45b127fd7d2f6",
    "0003_recall.sql": "3ddf373f77e68545",
    "0004_spending.sql": "2432f999e9bf1d9b",
    "0005_digest.sql": "741873b76c709229",
    "0006_facts.sql": "f58d2801bc62939a",
    "0007_moving.sql": "9b329e77839b2b47",
    "0008_retention.sql": "1c6584b7347064e2",
    "0009_display_names.sql": "4709be4245bf33d5",
    "0010_time_order.sql": "245cc963b4d0abc8",
    "0011_versions.sql": "a2df0020e478ef15",
    "0012_message_types.sql": "80981221fceecb72",
    "0013_message_details.sql": "d9922a078f60c6c8",
    "0014_checksums.sql": "505e845e31aa0009",
    "0015_kinds.sql": "9b7478b73c170f06",
    "0016_unindexed.sql": "581b24bdafb9d5eb",
    "0017_receipts.sql": "38bcd2c060b56e10",
    "0018_names_in_views.sql": "35cb5f3fd0ca42e5",
    "0019_shown_messages.sql": "acf5b6748be76ba9",
    "0020_owners_of_replies.sql": "e204266994284925",
    "0021_packed_vectors.sql": "a7ff9b493ceab765",
    "0022_names_of_tables.sql": "0b678d94d8a5ff45",
    "0023_memories_of_contexts.sql": "e18c8c4c42bd2237",
    "0024_matters.sql": "cbb85fac88c5e842",
    "0025_lines_of_facts.sql": "17584f938b4361da",
    "0026_devanagari.sql": "8620d25833763746",
}

POSTGRES_MIGRATIONS = {
    "0001_the_log.sql": "0c64bda942cc1cb1",
    "0002_views.sql": "a095c37899f319f2",
    "0003_walls.sql": "b5c59b9fde17ca9a",
    "0004_walls_by_new_settings.sql": "6ab047a258a8a954",
    "0005_display_names.sql": "4786f21d5b6f343e",
    "0006_time_order.sql": "c8b425974199a70a",
    "0007_versions.sql": "e0cd6601688d6d9a",
    "0008_message_types.sql": "6e55752b5bb72f61",
    "0009_message_details.sql": "d50aaef34467bdbb",
    "0010_checksums.sql": "d821af6708ae0872",
    "0011_kinds.sql": "449df0a2322930b7",
    "0012_receipts.sql": "d0e5d002c347833a",
    "0013_shown_messages.sql": "bb80e32729a51bcd",
    "0014_owners_of_replies.sql": "903803ebc4ffeb4e",
    "0015_names_in_views.sql": "4b65179808957435",
    "0016_token_vectors.sql": "b4ff10f0ec6c7243",
    "0017_names_of_tables.sql": "84ffd25fce0c2bad",
    "0018_memories_of_contexts.sql": "9d04dc7d0ea7dd5a",
    "0019_matters.sql": "b68f34092bc56cf2",
    "0020_lines_of_facts.sql": "285187c56b874bc9",
    "0021_devanagari.sql": "47d7659c1f7ecc0d",
}


def test_no_name_of_the_stores_hides_a_module() -> None:
    for module in iter_modules(stores.__path__):
        assert ismodule(import_module(f"aforesaid.store.{module.name}"))
        assert ismodule(getattr(stores, module.name)), module.name


def test_the_public_face_is_small_and_whole() -> None:
    assert len(aforesaid.__all__) <= 20
    for name in aforesaid.__all__:
        assert getattr(aforesaid, name) is not None
    assert set(aforesaid.__all__) <= set(dir(aforesaid))


@pytest.mark.defect("I3")
def test_the_errors_are_there_without_an_import_of_their_own() -> None:
    program = "import aforesaid; print(issubclass(aforesaid.errors.InvalidInput, aforesaid.AforesaidError))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"


def test_every_error_is_drawn_in_the_tree() -> None:
    drawing = errors.__doc__ or ""
    for name in errors.__all__:
        error = getattr(errors, name)
        assert issubclass(error, errors.AforesaidError)
        assert re.search(rf"\b{name}\b", drawing), f"{name} is missing in the tree of errors"


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, json, aforesaid; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    loaded = {name.partition(".")[0] for name in json.loads(output)}
    heavy = {"apsw", "anyio", "asyncio", "numpy", "typer", "rich", "openai", "fastapi", "pydantic", "sqlite3"}
    assert not loaded & heavy


def test_using_it_loads_neither_a_server_nor_the_command_line(tmp_path: Path) -> None:
    program = (
        "import sys, json, aforesaid\n"
        "with aforesaid.open(sys.argv[1]) as memory: memory.user('ann').add('user', 'hello')\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "memory.db")], check=True, capture_output=True, text=True
    ).stdout
    loaded = {name.partition(".")[0] for name in json.loads(output)}
    assert not loaded & {"numpy", "typer", "rich", "openai", "fastapi", "pydantic"}


def test_no_regular_expression_is_compiled_before_it_is_used() -> None:
    program = (
        "import re, sys, aforesaid.memory, aforesaid.context, aforesaid.facts, aforesaid.assistant, aforesaid.cli\n"
        "aforesaid.cli.app\n"
        "print([f'{module}.{name}' for module, its in sys.modules.items() if module.startswith('aforesaid')\n"
        "       for name, value in vars(its).items() if isinstance(value, re.Pattern)])"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_every_regular_expression_is_valid() -> None:
    found = 0
    for module in walk_packages(aforesaid.__path__, "aforesaid."):
        if not module.name.startswith(("aforesaid.integrations", "aforesaid.__main__", "aforesaid.bots")):
            for value in vars(import_module(module.name)).values():
                if isinstance(value, LazyPattern):
                    assert isinstance(value.pattern, str | bytes)
                    found += 1
    assert found > 200


def test_the_types_of_the_blocking_face_are_up_to_date(tmp_path: Path) -> None:
    before = (ROOT / "src/aforesaid/_sync_types.pyi").read_text(encoding="utf-8")
    program = (ROOT / "tools/sync_types.py").read_text(encoding="utf-8")
    copy = tmp_path / "tools" / "sync_types.py"
    copy.parent.mkdir()
    copy.write_text(program, encoding="utf-8")
    package = tmp_path / "src/aforesaid"
    shutil.copytree(ROOT / "src/aforesaid/front", package / "front")
    shutil.copy(ROOT / "src/aforesaid/memory.py", package)
    subprocess.run([sys.executable, str(copy)], check=True, capture_output=True)
    ruff = [sys.executable, "-m", "ruff", "--config", str(ROOT / "pyproject.toml")]
    made = package / "_sync_types.pyi"
    subprocess.run([*ruff, "check", "--fix-only", "--quiet", str(made)], check=False)
    subprocess.run([*ruff, "format", "--quiet", str(made)], check=True)
    assert made.read_text(encoding="utf-8") == before, "run: make stubs"


def test_no_migration_was_edited() -> None:
    """A migration that files out there have run never changes; what comes later is a new one."""
    for store, known in (("sqlite", MIGRATIONS), ("postgres", POSTGRES_MIGRATIONS)):
        folder = ROOT / "src/aforesaid/store" / store / "migrations"
        found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in folder.glob("*.sql")}
        assert found == known
        numbers = sorted(int(name.partition("_")[0]) for name in found)
        assert numbers == list(range(1, len(numbers) + 1))


def test_the_test_files_that_run_first_exist() -> None:
    assert [name for name in ordering.SLOWEST if not (ordering.TESTS / name).is_file()] == []
