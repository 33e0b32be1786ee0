"""Parts of Aforesaid that need packages beyond its own, and how to install them."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra, for the end of an error.

    Aforesaid is installed from its repository: it is not on a package index yet.
    """
    return f"in a clone of the Aforesaid repository, run: pip install '.[{extra}]'"
