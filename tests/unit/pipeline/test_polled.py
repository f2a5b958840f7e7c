"""Polls by number, compared with counting them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.transforms.polled import MINUTE, by_minute

NOON = 1_800_000 * MINUTE
TIMES = st.dictionaries(st.integers(NOON, NOON + 20 * MINUTE), st.booleans(), max_size=30)


@given(TIMES)
def test_every_minute_shows_the_polls_before_it_in_it_and_after_it(polls: dict[int, bool]) -> None:
    """As counted one by one, from ten minutes before the first poll, for so long a sample holds."""
    times, wholes = sorted(polls), sorted(at for at, whole in polls.items() if whole)
    rows = by_minute(np.array(times, np.int64), np.array(wholes, np.int64)).to_pylist()

    if times:
        assert list(range(times[0] - times[0] % MINUTE - 10 * MINUTE, times[-1] + 1, MINUTE)) == [
            row["minute"] for row in rows
        ]
    for row in rows:
        begin, end = row["minute"], row["minute"] + MINUTE
        assert sum(at < begin for at in times) == row["first"]
        assert sum(at < end for at in times) == row["end"]
        assert [at for at in times if begin <= at < end] == row["times"]
        assert [at for at in wholes if begin <= at < end] == row["wholes"]
        assert next((at for at in wholes if at >= end), None) == row["later"]


def test_without_a_poll_there_is_no_minute() -> None:
    """And no error."""
    assert 0 == by_minute(np.array([], np.int64), np.array([], np.int64)).num_rows
