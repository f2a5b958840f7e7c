from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Queue
from ackscope.tables import HEARTBEAT
from exporter.landing.changes import BEAT, ChangeTracker, differences
from exporter.landing.shapes import QUEUES
from tests.unit.exporter.made import WALL


def moment(seconds):
    """This long after the first reading."""
    return Instant(wall=WALL + seconds, mono=1000.25 + seconds)


def queue(name="orders", **changes):
    """A queue with five messages."""
    return Queue(**{"vhost": "/", "name": name, "messages_ready": 5, "stats": MessageStats(publish=5), **changes})


def rows(blocks):
    """(seconds after the first reading, queue, messages ready, gone) of each row."""
    found = [row for block in blocks for row in block.arrow().to_pylist()]
    return [(round(row["at"].timestamp() - WALL), row["queue"], row["messages_ready"], row["gone"]) for row in found]


def test_what_moved_is_in_both():
    """Only what came and what left differs, wherever it stood; equal is not the same."""
    a, b, c, d = queue("a"), queue("b"), queue("c"), queue("d")
    twin = replace(b)

    assert ([], []) == differences((a, b), (a, b))
    assert ([a], [d]) == differences((a, b, c), (b, c, d))
    assert ([b], [twin]) == differences((a, b, c), (c, a, twin))
    assert ([a, b], []) == differences((a, b), ())


def test_the_first_reading_is_landed_whole():
    """Then a quiet queue has no row until its turn comes."""
    tracker, quiet = ChangeTracker(QUEUES, "shop"), (queue("a"), queue("b"))
    first = tracker.take(moment(0), quiet)
    whole = tracker.whole

    assert [(0, "a", 5, False), (0, "b", 5, False)] == rows(first)
    assert [] == tracker.take(moment(5), tuple(quiet))
    assert (True, False) == (whole, tracker.whole)


def test_a_change_has_the_last_quiet_poll_before_it():
    """So that what grew did so between two polls; a row that is there is not landed twice."""
    tracker = ChangeTracker(QUEUES, "shop")
    tracker.take(moment(0), (queue(),))
    tracker.take(moment(5), (same := queue(memory=9),))
    after_rest = tracker.take(moment(10), (queue(messages_ready=6),))
    at_once = tracker.take(moment(15), (queue(messages_ready=7),))

    assert 9 == same.memory
    assert [(5, "orders", 5, False), (10, "orders", 6, False)] == rows(after_rest)
    assert [(15, "orders", 7, False)] == rows(at_once)


def test_details_that_are_only_newer_are_no_change():
    """The row before a change still has the newest details."""
    tracker = ChangeTracker(QUEUES, "shop")
    tracker.take(moment(0), (queue(details_at=moment(-60)),))
    quiet = tracker.take(moment(5), (queue(details_at=moment(4)),))
    changed = tracker.take(moment(10), (queue(details_at=moment(9), stats=MessageStats(publish=8)),))
    reported = [row["details_at"].timestamp() - WALL for block in changed for row in block.arrow().to_pylist()]

    assert [] == quiet
    assert [4, 9] == reported


def test_a_queue_that_came_was_not_there_before():
    """And one that went is reported at the poll that did not show it."""
    tracker = ChangeTracker(QUEUES, "shop")
    stays = queue("stays")
    tracker.take(moment(0), (stays, queue("goes")))

    assert [(0, "comes", None, True), (5, "comes", 5, False), (5, "goes", None, True)] == rows(
        tracker.take(moment(5), (queue("comes"), stays))
    )


def test_queues_of_the_probes_are_left_out():
    """Traffic of our own probes is not load of the user."""
    tracker = ChangeTracker(QUEUES, "shop", skip=lambda it: it.name.startswith("ackscope."))
    own = queue("ackscope.probe")
    landed = tracker.take(moment(0), (own, queue()))
    landed += tracker.take(moment(5), (queue("ackscope.probe", messages_ready=9), queue("b")))
    landed += tracker.take(moment(5 + BEAT), ())

    assert {"orders", "b"} == {name for _, name, *_ in rows(landed)}


def test_heartbeats_of_many_queues_are_spread():
    """Each has its turn once, and none of the readings has many."""
    tracker, quiet = ChangeTracker(QUEUES, "shop"), tuple(queue(f"queue-{number}") for number in range(2000))
    tracker.take(moment(0), quiet)
    beats = [rows(tracker.take(moment(seconds), tuple(quiet))) for seconds in range(5, int(BEAT) + 1, 5)]

    assert {it.name for it in quiet} == {name for beat in beats for _, name, *_ in beat}
    assert 2000 == sum(map(len, beats))
    assert max(map(len, beats)) < 100


# ------------------------------------------------------------ what is landed tells all


@dataclass(frozen=True)
class Seen:
    """The state of a queue at a poll, as rows can express it."""

    ready: int | None
    publish: int | None


STATES = st.none() | st.builds(Seen, ready=st.none() | st.integers(0, 2), publish=st.none() | st.integers(0, 2))
POLLS = st.tuples(
    st.sampled_from([1.0, 5.0, 5.5, 60.0, 299.0, BEAT - 1, HEARTBEAT + 5]),
    st.tuples(STATES, STATES, STATES),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.booleans(),
    st.permutations(range(3)),
)
"""Seconds since the poll before; the queues' new states (None: no queue); which of them stay as they were, and
whether those are new objects; the order in which they are shown."""


class Broker:
    """Three queues as polls see them; an unchanged queue mostly stays the same object."""

    def __init__(self):
        self.queues = [None, None, None]

    def change(self, states, keep, *, again):
        """Take on new states, but for the queues to `keep`; answers with what a reader should find."""
        for number, state in enumerate(states):
            if keep[number]:
                if again and self.queues[number] is not None:
                    self.queues[number] = replace(self.queues[number], memory=1)
            elif state is None:
                self.queues[number] = None
            else:
                self.queues[number] = queue(
                    str(number), messages_ready=state.ready, stats=MessageStats(publish=state.publish)
                )
        return {it.name: Seen(it.messages_ready, it.stats.publish) for it in self.queues if it is not None}


@given(st.lists(POLLS, min_size=1, max_size=20))
def test_rows_give_back_every_queue_at_every_poll(history):
    """As the docstring of the table says: the last row, while it holds, and no other."""
    tracker, broker, seconds, truth, landed = ChangeTracker(QUEUES, "shop"), Broker(), 0.0, {}, []
    for pause, states, keep, again, order in history:
        seconds += pause
        truth[seconds] = broker.change(states, keep, again=again)
        shown = tuple(broker.queues[place] for place in order if broker.queues[place] is not None)
        landed += tracker.take(moment(seconds), shown)
    reported = [row for block in landed for row in block.arrow().to_pylist()]
    there = [(row["at"], row["queue"]) for row in reported if not row["gone"]]

    assert len(set(there)) == len(there)
    assert truth == {at: _reconstructed(reported, at) for at in truth}
    assert _moments_before_changes(truth) <= {(_seconds(row), row["queue"]) for row in reported}


def _seconds(row):
    return round(row["at"].timestamp() - WALL, 3)


def _reconstructed(reported, at):
    """What a reader makes of the rows at one poll."""
    found = {}
    for name in {row["queue"] for row in reported}:
        earlier = [row for row in reported if row["queue"] == name and _seconds(row) <= at]
        last = max(earlier, key=_seconds, default=None)
        if last is not None and not last["gone"] and at - _seconds(last) < HEARTBEAT:
            found[name] = Seen(last["messages_ready"], last["publish"])
    return found


def _moments_before_changes(truth):
    """(poll, queue) of each poll that stood just before a change, and of the change."""
    found = set()
    for before, after in pairwise(sorted(truth)):
        for name in truth[before].keys() | truth[after].keys():
            if truth[before].get(name) != truth[after].get(name):
                found.add((after, name))
                if name in truth[after]:  # one that went needs none: its last row holds until then
                    found.add((before, name))
    return found
