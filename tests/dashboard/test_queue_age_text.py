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


@pytest.mark.parametrize(
    ("seconds", "waiting", "published", "acked", "expected"),
    [
        (45.1, 3, 0.0, 0.1, "45 s"),
        (600, 3, 2.0, 2.0, "10 min"),
        (math.nan, 3, 2.0, 0.0, "does not drain"),
        (math.nan, 21, 2.0, 2.0, "does not drain"),
        (math.nan, 3, 2.0, math.nan, "does not drain"),
        (math.nan, 0, 2.0, 2.0, "empty"),
        (math.nan, 1, 13.9, 13.8, "keeps up"),
        (math.nan, 3, math.nan, math.nan, "\N{EN DASH}"),
        (math.nan, math.nan, math.nan, math.nan, "\N{EN DASH}"),
    ],
)
def test_the_time_to_empty(seconds, waiting, published, acked, expected) -> None:
    """A dash only if it is unknown; what is on its way through a healthy queue is no backlog."""
    assert expected == queue_age.empties_words(seconds, waiting, published, acked)


def test_the_oldest_message_of_an_empty_queue() -> None:
    """There is none, which is no dash."""
    assert "none" == queue_age.oldest_words(math.nan, math.nan, 0)
    assert "12 to 17 s" == queue_age.oldest_words(12.2, 16.8, 3)
    assert "\N{EN DASH}" == queue_age.oldest_words(math.nan, math.nan, 3)
