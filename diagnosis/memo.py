"""Caches results that several rules compute from one view."""

from collections.abc import Callable
from typing import TypeVar

from diagnosis.view import View

T = TypeVar("T")


def per_view(view: View, make: Callable[[View], T]) -> T:
    """Return `make(view)`, computed on the first call and cached in the view.

    Args:
        view: the view that is being judged.
        make: a module-level function, not a lambda, because it is the cache key.
    """
    if make not in view.made:
        view.made[make] = make(view)
    found: T = view.made[make]
    return found
