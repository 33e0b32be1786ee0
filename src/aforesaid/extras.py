"""How to install packages beyond Aforesaid's own, and what is loaded late: numpy, and compiled regular expressions."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["LazyPattern", "how_to_install", "np", "re"]


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra, for the end of an error.

    Aforesaid is installed from its repository: it is not on a package index yet.
    """
    return f"in a clone of the Aforesaid repository, run: pip install '.[{extra}]'"


class _LazyModule:
    """A module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - as many types as there are attributes
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


class LazyPattern:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - those of `re.compile`
        self._arguments = arguments

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - as many types as there are attributes
        if attribute == "_compiled":
            value = importlib.import_module("re").compile(*self._arguments)
        else:
            value = getattr(self._compiled, attribute)
        setattr(self, attribute, value)
        return value


class _LazilyCompiling(_LazyModule):
    """The module `re`, whose `compile` returns at once."""

    compile = LazyPattern


if TYPE_CHECKING:
    import re

    import numpy as np
else:
    np = _LazyModule("numpy")  # a tenth of a second, which a program that only stores messages does not need
    re = _LazilyCompiling("re")  # half a second for all expressions, of which a command uses a few
