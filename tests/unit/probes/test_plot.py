from hypothesis import given
from hypothesis import strategies as st

from ackscope.records import Outcome
from probes.run_trace import COLUMNS, RunTrace


def test_a_stall_shows_in_its_columns():
    """The tallest columns are those of messages that were due during the stall."""
    track = RunTrace()
    for step in range(100):
        stalled = 40 <= step < 60
        track.message(10.0 + step * 0.02, 2.0 - (step - 40) * 0.1 if stalled else 0.001, Outcome.ACKED)
    lines = track.lines()
    top = next(line for line in lines if line.lstrip().startswith("2.00 s"))

    assert top.index("#") - top.index("|") - 1 == int(0.8 / track.width)
    assert "longest per 50.0 ms of scheduled send time" in lines[0]
    assert lines[-1].endswith("2 s")


def test_what_was_not_acked_is_marked_when_it_was():
    """The worst outcome of each stretch is below the plot, with a legend."""
    track = RunTrace()
    for step in range(20):
        outcome = Outcome.NACKED if step in (5, 6) else Outcome.LOST if step == 10 else Outcome.ACKED
        track.message(step * 0.05, None if outcome is Outcome.LOST else 0.001, outcome)
    track.blocked(0.75, 0.85)
    lines = track.lines()
    marks = next(line for line in lines if "not acked" in line).split("|")[1]

    assert "     nn   l    bbb" == marks.rstrip()
    assert "nacked n" in lines[-1]


def test_a_run_without_any_answer_has_no_picture():
    """Without responses there is no longest one."""
    track = RunTrace()
    track.message(1.0, None, Outcome.TIMED_OUT)
    track.message(9.0, None, Outcome.TIMED_OUT)

    assert [] == track.lines()
    assert ["u", "u"] == [item["marks"] for item in track.document()]


@given(st.lists(st.tuples(st.floats(0, 100_000), st.one_of(st.none(), st.floats(1e-7, 3600))), max_size=60))
def test_the_longest_response_is_kept_however_long_the_run(messages):
    """Stretches are merged, never dropped; no line is wider than a terminal."""
    track = RunTrace()
    for intended, response in messages:
        track.message(intended, response, Outcome.LOST if response is None else Outcome.ACKED)
    known = [response for _, response in messages if response is not None]

    assert max(known, default=None) == max(
        (stretch.longest for stretch in track.stretches if stretch.longest is not None), default=None
    )
    assert len(track.stretches) <= COLUMNS
    assert all(len(line) <= 80 for line in track.lines())
