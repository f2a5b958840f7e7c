"""What several rules work out of one view, worked out once a view."""

from collections.abc import Callable
from typing import TypeVar

from diagnosis.view import View

T = TypeVar("T")


def per_view(view: View, make: Callable[[View], T]) -> T:
    """What `make` makes of this view: made when first asked for, and gone with the view.

    Args:
        view: the one look that is being judged.
        make: a function of the module, not a lambda: it is what the result is per_view by.
    """
    if make not in view.made:
        view.made[make] = make(view)
    found: T = view.made[make]
    return found
