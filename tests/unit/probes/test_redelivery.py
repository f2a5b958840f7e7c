import pytest

from probes.redelivery import wrong_death, wrong_flags, wrong_order

DEATH = {"queue": "q", "reason": "rejected", "count": 1, "exchange": "", "routing-keys": ["q"], "time": 0}


def test_a_requeued_message_comes_before_the_later_one():
    """Three messages were published, and the second one was requeued."""
    assert wrong_order([1, 2, 2, 3], 3) is None
    assert "received 1, 2, 3, 2, expected 1, 2, 2, 3" in wrong_order([1, 2, 3, 2], 3)


def test_the_redelivered_flag_is_false_first_and_true_after():
    """Both wrong cases are distinguished."""
    assert wrong_flags([1, 2, 2, 3], [False, False, True, False]) is None
    assert "flag is false on a second delivery" in wrong_flags([1, 2, 2, 3], [False, False, False, False])
    assert "flag is true on a first delivery" in wrong_flags([1, 2, 2, 3], [True, False, True, False])


def test_the_death_of_a_message_is_recorded_in_its_header():
    """One entry, with queue, reason, count, exchange and routing key."""
    assert wrong_death({"x-death": [DEATH]}, "q") is None


@pytest.mark.parametrize(
    ("headers", "reported"),
    [
        ({}, "no x-death header"),
        ({"x-death": []}, "no x-death header"),
        ({"x-death": [DEATH, DEATH]}, "with one entry"),
        ({"x-death": [{**DEATH, "count": 2}]}, "count is 2, expected 1"),
        ({"x-death": [{**DEATH, "reason": "expired"}]}, "reason is 'expired', expected 'rejected'"),
        ({"x-death": [{**DEATH, "queue": "other"}]}, "queue is 'other', expected 'q'"),
    ],
)
def test_a_wrong_death_is_reported(headers, reported):
    """The message has the entry, its value, and the expected value."""
    assert reported in wrong_death(headers, "q")
