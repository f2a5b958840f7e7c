"""Validates names in query parameters. Pure."""

from collections.abc import Collection

from ackscope.cli import nearest
from ackscope.errors import UsageError

_SHOWN = 80
"""Characters of an unknown name that the error repeats."""


def parse_names(key: str, requested: str | None, known: Collection[str]) -> tuple[str, ...]:
    """Names of a comma-separated list such as `queues,nodes`, in the order of `known`; all if it is None.

    Raises:
        UsageError: an unknown name; the message lists the known ones.
    """
    if requested is None:
        return tuple(known)
    names = [name.strip() for name in requested.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"{key}={unknown_name(name, known)}")
    return tuple(name for name in known if name in names)


def unknown_name(got: str, known: Collection[str]) -> str:
    """Error text for a missing or unknown name: the nearest match and all known names."""
    shown = got[:_SHOWN]
    what = f"{shown!r} is not known{nearest(shown, list(known))}" if got else " is missing"
    return f"{what}; known: {', '.join(known)}"
