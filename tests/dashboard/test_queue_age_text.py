import math

import pytest

from dashboard.format import queue_age


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (12.2, 16.8, "12 to 17 s"),
        (0.0, 5.2, "0 to 5 s"),
        (100.0, 400.0, "100 s to 7 min"),
        (7260.0, 7265.0, "2 h 1 min"),
        (12.2, math.nan, "at least 12 s"),
        (12.2, None, "at least 12 s"),
        (math.nan, math.nan, None),
        (None, None, None),
    ],
)
def test_the_age_of_the_oldest_message(lower, upper, expected) -> None:
    """With one unit if both bounds have the same."""
    assert expected == queue_age.oldest(lower, upper)


def test_why_a_bound_is_unknown() -> None:
    """A code of a newer exporter is shown as it is."""
    assert "" == queue_age.reasons(())
    assert "the queue has priorities, so an older message may be left; new_code" == queue_age.reasons(
        ("priorities", "new_code")
    )


def test_the_time_to_empty() -> None:
    """None if the queue does not drain."""
    assert (None, "45 s", "10 min") == (queue_age.empties(math.nan), queue_age.empties(45.1), queue_age.empties(600))
