"""Fast constructors, for code that makes hundreds of values at once.

The constructor of a frozen dataclass sets each field with `object.__setattr__`. For a search that makes hundreds of
values, that is most of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, make_dataclass
from functools import partial
from typing import Any, TypeVar

Value = TypeVar("Value")
Row = TypeVar("Row", bound=tuple[Any, ...])


def named_tuples(kind: type[Row], rows: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """Return named tuples of rows that have all their fields, in order. The length of a row is not checked."""
    return map(partial(tuple.__new__, kind), rows)


def fast_constructor(kind: type[Value]) -> Callable[..., Value]:
    """Return a faster constructor of a frozen dataclass with slots. It takes all fields, in order."""
    # A class with the same slots that is not frozen: an instance is filled, then its class is switched to `kind`.
    unguarded = make_dataclass(kind.__name__, [field.name for field in fields(kind)], slots=True)  # type: ignore[arg-type]

    def make(*values: Any) -> Value:  # noqa: ANN401 - whatever the fields hold
        made: Any = unguarded(*values)
        made.__class__ = kind
        return made  # type: ignore[no-any-return]

    return make
