"""The policies and arguments of a queue as text."""

import pytest

from dashboard.data.queue_reports import PoliciesAndArguments, SetValue
from dashboard.format import queue_settings

_LENGTH = SetValue(name="max-length", value=10_000, by="policy")
_OVERFLOW = SetValue(name="overflow", value="drop-head", by="argument")
_SINGLE = SetValue(name="single-active-consumer", value=True, by="argument")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (None, ""),
        (PoliciesAndArguments(), "No policy. Set: nothing."),
        (PoliciesAndArguments(policy="limits", set=(_LENGTH,)), "Policy limits. Set: max-length 10,000 (policy)."),
        (
            PoliciesAndArguments(policy="limits", operator_policy="cap", set=(_LENGTH, _OVERFLOW)),
            "Policy limits and operator policy cap. Set: max-length 10,000 (policy), overflow drop-head (argument).",
        ),
        (
            PoliciesAndArguments(operator_policy="cap", set=(_SINGLE,)),
            "Operator policy cap. Set: single-active-consumer true (argument).",
        ),
    ],
)
def test_what_is_set_is_one_line(settings, expected) -> None:
    """With what sets each value; unknown is nothing, and nothing set is said."""
    assert expected == queue_settings.words(settings)
