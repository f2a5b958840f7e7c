import pytest

from ackscope.clock import Instant, iso
from ackscope.errors import BrokerError


def test_an_error_is_one_line_even_if_it_quotes_several():
    """A name, a value or an answer may have some."""
    assert "queue 'a\\nb\\r' is gone" == str(BrokerError("queue 'a\nb\r' is gone"))


def test_the_end_of_a_log_follows_in_lines_of_its_own():
    """It is what a person must read."""
    assert "the node exited; its log:\n  one\n  two" == str(
        BrokerError("the node exited; its log:").with_log("  one\n  two")
    )


@pytest.mark.parametrize(
    ("wall", "text"),
    [
        (1_700_000_000.9, "2023-11-14T22:13:20Z"),
        (-1e300, "1970-01-01T00:00:00Z"),
        (1e300, "9999-12-31T23:59:59Z"),
        (float("inf"), "9999-12-31T23:59:59Z"),
        (float("nan"), "1970-01-01T00:00:00Z"),
    ],
)
def test_every_number_has_a_date(wall, text):
    """A damaged one must not end a diagnosis."""
    assert text == iso(wall) == Instant(wall=wall, mono=0.0).iso()
