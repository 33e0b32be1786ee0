"""Anthropic's memory tool, with its files kept in a memory.

    tool = AforesaidMemoryTool(memory, "ann")
    client.beta.messages.run_tools(model=…, max_tokens=…, messages=…, tools=[tool]).until_done()

Each file is a document of the user, found by `search`, exported and backed up with everything else; every earlier
version of a file is kept. Claude decides what to write, so the files are the model's notes, not what people said.
"""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.integrations.shared import AnyMemory, Calls, Collection, Document, NewDocument
from aforesaid.memory import Memory

_ROOT: Final = "/memories"
_CHAT: Final = "files of the memory tool"
"""The chat of the user that the files are stored in."""
_DEEPEST: Final = 2
"""Levels of folders that `view` lists."""
_DIGITS: Final = 6
"""Width of line numbers."""
_AROUND: Final = 2
"""Lines shown before and after a change."""


class MemoryFiles:
    """The files of one user, and the commands of the memory tool on them. Raises ToolError for what Claude can fix."""

    def __init__(self, files: Collection) -> None:
        self._files = files

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with line numbers, or the list of files in a folder."""
        path = _normal(command.path)
        file = await self._files.get(path)
        if file is None:
            inside = await self._inside(path)
            if not inside and path != _ROOT:
                raise _missing(command.path)
            return _listing(path, inside)
        lines = str(file.value).split("\n")
        first, last = command.view_range or (1, -1)
        first = max(1, first)
        shown = lines[first - 1 : None if last == -1 else last]
        return f"Here's the content of {command.path} with line numbers:\n{_numbered(shown, first)}"

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Store a new file."""
        path = _normal(command.path)
        if path == _ROOT or await self._files.get(path) is not None or await self._inside(path):
            raise ToolError(f"File {command.path} already exists")
        await self._no_file_above(path)
        await self._write(path, command.file_text)
        return f"File created successfully at: {command.path}"

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""
        text = await self._text(command.path)
        places = _places(text, command.old_str)
        if not places:
            raise ToolError(
                f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in {command.path}."
            )
        if len(places) > 1:
            lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places)
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}` in lines: {lines}. "
                "Please ensure it is unique"
            )
        changed = text.replace(command.old_str, command.new_str or "", 1)
        await self._write(_normal(command.path), changed)
        first = max(0, text.count("\n", 0, places[0]) - _AROUND)
        shown = changed.split("\n")[first : text.count("\n", 0, places[0]) + _AROUND + 1]
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            f"{_numbered(shown, first + 1)}"
        )

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines below a line of a file."""
        lines = (await self._text(command.path)).split("\n")
        if not lines[-1]:
            lines.pop()
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {command.insert_line}. "
                f"It should be within the range [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        text = "\n".join(lines)
        await self._write(_normal(command.path), text if text.endswith("\n") else f"{text}\n")
        return f"The file {command.path} has been edited."

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Take back a file, or all files in a folder."""
        path = _normal(command.path)
        if path == _ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        names = [path] if await self._files.get(path) else [file.key for file in await self._inside(path)]
        if not names:
            raise ToolError(f"The path {command.path} does not exist")
        for name in names:
            await self._files.delete(name)
        return f"Successfully deleted {command.path}"

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or all files in a folder."""
        old, new = _normal(command.old_path), _normal(command.new_path)
        if old == _ROOT:
            raise ToolError("Cannot rename the /memories directory itself")
        if new == _ROOT or await self._files.get(new) or await self._inside(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        file = await self._files.get(old)
        moved = await self._inside(old) if file is None else [file]
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        if new.startswith(f"{old}/"):
            raise ToolError(f"The destination {command.new_path} is inside {command.old_path}")
        await self._no_file_above(new)
        await self._files.put([_document(new + each.key.removeprefix(old), str(each.value)) for each in moved])
        for each in moved:
            await self._files.delete(each.key)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    async def clear(self) -> str:
        """Take back all files."""
        await self._files.clear()
        return "All memory cleared"

    async def _inside(self, path: str) -> list[Document]:
        return [file for file in await self._files.all() if file.key.startswith(f"{path}/")]

    async def _text(self, path: str) -> str:
        file = await self._files.get(_normal(path))
        if file is None:
            if await self._inside(_normal(path)):
                raise ToolError(f"The path {path} is not a file.")
            raise _missing(path)
        return str(file.value)

    async def _no_file_above(self, path: str) -> None:
        folder = posixpath.dirname(path)
        while folder != _ROOT:
            if await self._files.get(folder) is not None:
                raise ToolError(f"{folder} is a file, not a directory")
            folder = posixpath.dirname(folder)

    async def _write(self, path: str, text: str) -> None:
        await self._files.put([_document(path, text)])


P = ParamSpec("P")


class _OfUser:
    """The files of a user, and the calls on them that both forms of the tool make."""

    def __init__(self, memory: AnyMemory, user: str, *, space: str = DEFAULT_SPACE) -> None:
        super().__init__()
        self._calls = Calls(memory, Memory)
        self._files = MemoryFiles(Collection(self._calls.target.user(user, space=space).chat(_CHAT)))


def _blocking(
    command: Callable[Concatenate[MemoryFiles, P], Awaitable[str]],
) -> Callable[Concatenate[_OfUser, P], str]:
    @wraps(command)
    def run(self: _OfUser, /, *args: P.args, **kwargs: P.kwargs) -> str:
        return self._calls.run(lambda _: command(self._files, *args, **kwargs))

    return run


def _awaited(
    command: Callable[Concatenate[MemoryFiles, P], Awaitable[str]],
) -> Callable[Concatenate[_OfUser, P], Coroutine[Any, Any, str]]:
    @wraps(command)
    async def wait(self: _OfUser, /, *args: P.args, **kwargs: P.kwargs) -> str:
        return await self._calls.wait(lambda _: command(self._files, *args, **kwargs))

    return wait


class AforesaidMemoryTool(_OfUser, BetaAbstractMemoryTool):
    """The memory tool for sync clients. Needs a memory from `aforesaid.open`."""

    view = _blocking(MemoryFiles.view)
    create = _blocking(MemoryFiles.create)
    str_replace = _blocking(MemoryFiles.str_replace)
    insert = _blocking(MemoryFiles.insert)
    delete = _blocking(MemoryFiles.delete)
    rename = _blocking(MemoryFiles.rename)
    clear_all_memory = _blocking(MemoryFiles.clear)


class AsyncAforesaidMemoryTool(_OfUser, BetaAsyncAbstractMemoryTool):
    """The memory tool for async clients."""

    view = _awaited(MemoryFiles.view)
    create = _awaited(MemoryFiles.create)
    str_replace = _awaited(MemoryFiles.str_replace)
    insert = _awaited(MemoryFiles.insert)
    delete = _awaited(MemoryFiles.delete)
    rename = _awaited(MemoryFiles.rename)
    clear_all_memory = _awaited(MemoryFiles.clear)


def _document(path: str, text: str) -> NewDocument:
    return NewDocument(path, text, text)


def _normal(path: str) -> str:
    """Return a path without `..` and double slashes. Raises ToolError if it is not inside /memories."""
    if path != _ROOT and not path.startswith(f"{_ROOT}/"):
        raise ToolError(f"Path must start with {_ROOT}, got: {path}")
    normal = posixpath.normpath(path)
    if normal != _ROOT and not normal.startswith(f"{_ROOT}/"):
        raise ToolError(f"Path {path} would escape {_ROOT} directory")
    return normal


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _places(text: str, part: str) -> list[int]:
    found: list[int] = []
    place = text.find(part)
    while place >= 0 and part:
        found.append(place)
        place = text.find(part, place + 1)
    return found


def _numbered(lines: Iterable[str], first: int) -> str:
    return "\n".join(f"{number:>{_DIGITS}}\t{line}" for number, line in enumerate(lines, first))


def _listing(folder: str, files: Iterable[Document]) -> str:
    """Return the sizes and names of files and folders, as `du` shows them."""
    sizes: dict[str, int] = {folder: 0}
    for file in files:
        size = len(str(file.value).encode())
        sizes[folder] += size
        names = file.key.removeprefix(f"{folder}/").split("/")
        if any(name.startswith(".") for name in names):
            continue
        for depth in range(1, min(len(names), _DEEPEST) + 1):
            name = f"{folder}/{'/'.join(names[:depth])}{'/' if depth < len(names) else ''}"
            sizes[name] = sizes.get(name, 0) + size
    rows = (f"{_size(size)}\t{name}" for name, size in sorted(sizes.items()))
    return (
        f"Here're the files and directories up to {_DEEPEST} levels deep in {folder}, excluding hidden items:\n"
        + "\n".join(rows)
    )


def _size(size: float) -> str:
    for unit in "BKM":
        if size < 1024:  # noqa: PLR2004 - bytes in a kilobyte
            return f"{size:.0f}{unit}" if size == int(size) else f"{size:.1f}{unit}"
        size /= 1024
    return f"{size:.1f}G"
