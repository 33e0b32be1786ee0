"""Parts of Aforesaid that need packages beyond its own, how to install them, and a package that is loaded late."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["how_to_install", "np"]


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


if TYPE_CHECKING:
    import numpy as np
else:
    np = _LazyModule("numpy")  # a tenth of a second, which a program that only stores messages does not need
