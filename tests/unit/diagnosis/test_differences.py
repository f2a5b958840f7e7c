from hypothesis import given
from hypothesis import strategies as st

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from diagnosis.differences import Readings
from diagnosis.window import Timestamped

NAMES = "abcd"


def at(number):
    """Return the time of a reading; readings are 5 s apart."""
    return Instant(wall=1.7e9 + 5 * number, mono=5.0 * number)


@st.composite
def series(draw):
    """Return readings of queues that change, come and go; an unchanged queue is the same object."""
    known, found = {}, []
    for number in range(draw(st.integers(0, 6))):
        for name in NAMES:
            match draw(st.sampled_from(["same", "same", "changed", "gone"])):
                case "changed":
                    known[name] = Queue(vhost="/", name=name, messages=number)
                case "gone":
                    known.pop(name, None)
        order = draw(st.permutations(sorted(known))) if draw(st.booleans()) else sorted(known)
        found.append(Timestamped(at(number), tuple(known[name] for name in order)))
    return tuple(found)


@given(series())
def test_it_tells_what_a_dictionary_for_each_reading_would(readings):
    """This covers queues that always existed, came, went, and never existed."""
    reported = Readings(readings)
    for name in [*NAMES, "z"]:
        expected = [(seen.at, {it.name: it for it in seen.value}.get(name)) for seen in readings]

        assert [(moment, id(it)) for moment, it in expected] == [
            (moment, id(it)) for moment, it in reported.of(("/", name))
        ]


@given(series(), st.integers(0, 30))
def test_so_long_ago_is_the_latest_reading_that_is_old_enough(readings, seconds):
    """The age counts from the last reading; there may be no such reading."""
    old = [seen for seen in readings if readings[-1].at.since(seen.at) >= seconds]
    reported = Readings(readings)
    for name in NAMES:
        expected = {it.name: it for it in old[-1].value}.get(name) if old else None

        assert expected is reported.ago(("/", name), seconds)
