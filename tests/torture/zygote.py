"""Fresh processes in a millisecond: a process that has imported everything forks whenever one is wanted.

The zygote never starts a thread, so its forks are clean; a fork of the test process would not be. What the children
say comes through one pipe, a line at a time. A line shorter than PIPE_BUF is written whole or not at all, also when
its writer is killed, and all lines of a child come before the zygote's word that it has ended.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, Self

Tell = Callable[[list[Any]], None]
"""Says something to the test: a kind, and whatever belongs to it."""

_TESTS: Final = Path(__file__).parent.parent
_LONGEST_COMPLAINT: Final = 2_000


class Zygote:
    """The test's side: starts children and hears what they say."""

    def __init__(self, module: str, warnings: str = "") -> None:
        """Prepare children that run functions of a module: `function(tell, options)`. `warnings` is Python's `-W`."""
        paths = [str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, *(["-W", warnings] if warnings else []), "-m", "torture.zygote", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._pipe = self._process.stdin, self._process.stdout.fileno()
        self._rest = b""
        self._lines: deque[list[Any]] = deque()
        self._children = 0

    def start(self, function: str, **options: Any) -> int:  # noqa: ANN401 - whatever JSON holds
        """Fork a child and return its number. [number, "born", pid] is heard early, [number, "ended", status] last."""
        self._children += 1
        self._orders.write(json.dumps([self._children, function, options]).encode() + b"\n")
        self._orders.flush()
        return self._children

    def listen(self, seconds: float | None = None) -> Iterator[list[Any]]:
        """Yield [number, kind, …] as it is said, for so long."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            while self._lines:
                yield self._lines.popleft()
            patience = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._pipe], [], [], patience)[0]:
                return
            said = os.read(self._pipe, 1 << 16)
            assert said, "the zygote has died"
            *lines, self._rest = (self._rest + said).split(b"\n")
            self._lines.extend(json.loads(line) for line in lines)

    def expect(self, child: int, kind: str, *, keep: bool = False) -> list[Any]:
        """Wait until a child says something of a kind. What was said before that can still be listened to."""
        earlier: list[list[Any]] = []
        for line in self.listen():
            if line[:2] == [child, kind]:
                self._lines.extendleft(reversed([*earlier, line] if keep else earlier))
                return line
            assert line[0] != child or line[1] not in ("failed", "ended"), line
            earlier.append(line)
        raise AssertionError("listening without a limit does not end")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._orders.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class _Nursery:
    """The zygote's side."""

    def __init__(self, module: str) -> None:
        self._module = importlib.import_module(module)
        self._numbers: dict[int, int] = {}

    def run(self) -> None:
        signal.signal(signal.SIGCHLD, self._reap)
        for line in sys.stdin.buffer:
            number, function, options = json.loads(line)
            # A child that ends at once must not be reaped before its number is known.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
            child = os.fork()
            if child == 0:
                self._live(number, function, options)
            self._numbers[child] = number
            _tell([number, "born", child])
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        # The test is over, and nobody is left to hear what its children say.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for child in self._numbers:
            os.kill(child, signal.SIGKILL)

    def _reap(self, _signal: int, _frame: FrameType | None) -> None:
        while self._numbers:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return  # another signal came in between, and its call of this has reaped them all
            if child == 0:
                return
            _tell([self._numbers.pop(child), "ended", os.waitstatus_to_exitcode(status)])

    def _live(self, number: int, function: str, options: dict[str, Any]) -> None:
        status = 1
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            getattr(self._module, function)(lambda said: _tell([number, *said]), options)
            status = 0
        except BaseException:
            _tell([number, "failed", traceback.format_exc()[-_LONGEST_COMPLAINT:]])
        finally:
            os._exit(status)


def _tell(said: list[Any]) -> None:
    line = json.dumps(said, ensure_ascii=False).encode() + b"\n"
    assert len(line) <= select.PIPE_BUF, f"{len(line)} bytes could be torn: {line[:80]!r}"
    os.write(sys.stdout.fileno(), line)


if __name__ == "__main__":
    _Nursery(sys.argv[1]).run()
