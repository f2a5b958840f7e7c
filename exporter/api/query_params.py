"""What a client asked for by name in a query: checked against what there is. Pure."""

from collections.abc import Collection

from ackscope.cli import nearest
from ackscope.errors import UsageError

_SHOWN = 80
"""Characters of a wrong name that are repeated in the answer."""


def parse_names(key: str, requested: str | None, known: Collection[str]) -> tuple[str, ...]:
    """The names in a list such as `queues,nodes`, in the order of `known`; all of them where nothing is asked.

    Raises:
        UsageError: one of them is not known; the message lists those that are.
    """
    if requested is None:
        return tuple(known)
    names = [name.strip() for name in requested.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"{key}={unknown_name(name, known)}")
    return tuple(name for name in known if name in names)


def unknown_name(got: str, known: Collection[str]) -> str:
    """Says that a name is missing or not known, the nearest one, and all that are."""
    shown = got[:_SHOWN]
    what = f"{shown!r} is not known{nearest(shown, list(known))}" if got else " is missing"
    return f"{what}; known: {', '.join(known)}"
