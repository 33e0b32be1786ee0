"""Tables from a class of questions or writes to the function that performs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from types import FunctionType
from typing import Any


def performers(base: type, *namespaces: Mapping[str, Any]) -> dict[type, Callable[..., Any]]:
    """Return the functions of modules by the class that annotates their last parameter, if it is derived from `base`.

    Only functions that a module defines itself count. Where several have the same class, the public one counts; raises
    TypeError when there is not exactly one.
    """
    found: dict[type, list[FunctionType]] = {}
    for namespace in namespaces:
        for function in [each for each in namespace.values() if isinstance(each, FunctionType)]:
            operation = _last_parameter(function) if function.__module__ == namespace["__name__"] else None
            if isinstance(operation, type) and issubclass(operation, base):
                found.setdefault(operation, []).append(function)
    return {operation: _only(operation, functions) for operation, functions in found.items()}


def _only(operation: type, functions: list[FunctionType]) -> FunctionType:
    public = [each for each in functions if not each.__name__.startswith("_")] if len(functions) > 1 else functions
    if len(public) != 1:
        raise TypeError(f"{operation.__name__} is performed by {', '.join(each.__qualname__ for each in functions)}")
    return public[0]


def _last_parameter(function: FunctionType) -> object:
    """Return what annotates the last positional parameter; None where that is not the name of something."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    head, *rest = str(function.__annotations__.get(names[-1], "") if names else "").split(".")
    return reduce(lambda value, name: getattr(value, name, None), rest, function.__globals__.get(head))
