"""Tables and their figures."""

import pytest

from bench.tables import median, ms, percent, quantile, table, us, wrap


def test_a_table_lines_up():
    """The first column to the left, the others to the right."""
    lines = table(("rate", "p50", "p99"), [("200/s", "0.5", "12.0"), ("2000/s", "10.25", "3")])

    assert ["rate      p50   p99", "-------------------", "200/s     0.5  12.0", "2000/s  10.25     3"] == lines


def test_a_table_that_is_too_wide_is_a_mistake():
    """80 columns are all there is."""
    with pytest.raises(ValueError, match="a table of 81 columns"):
        table(("x" * 81,), [])


def test_a_paragraph_is_wrapped():
    """At words, with an indent."""
    assert ["a " * 39 + "a", "  b"] == wrap("a " * 40 + "b", "  ")


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 2), (0.51, 3), (0.99, 4), (1.0, 4)])
def test_a_quantile_is_a_value_that_was_seen(share, value):
    """Nearest rank, whatever the order."""
    assert value == quantile([4, 1, 3, 2], share)


def test_of_nothing_there_is_no_figure():
    """Absent is not zero."""
    assert (None, None, "-", "-", "-") == (quantile([], 0.5), median([None]), ms(None), us(None), percent(None))


def test_the_median_leaves_out_what_is_absent():
    """Of an even number it is the mean of the middle two."""
    assert (2, 2.5) == (median([3, None, 1, 2]), median([4, 1, 3, 2]))
