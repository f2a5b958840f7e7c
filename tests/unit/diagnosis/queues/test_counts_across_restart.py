"""Law: what findings count after the start of a node never exceeds what was lost, in whatever order figures come back.

The model has the true messages of a queue with a TTL, and what the management API shows of them: lengths and counters
come back with their first refresh after the start, each at its own time, and the counters begin again. Recorded on
3.10.8: the queue is listed without both at first, and it has expired what was due while the node was away.
"""

from dataclasses import dataclass

import pytest

from ackscope.findings import flat
from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, film, look, queue, stats
from tests.unit.diagnosis.queue_model import REFRESH
from tests.unit.diagnosis.queues.films import frame

COUNTING = {"ttl-expiry-loss", "unexplained-loss", "restart-loss", "queue-purged"}
KILLED, STARTED, QUIET, END = 35.0, 43.0, 75.0, 110
"""Seconds at which the node is killed and started, the publisher ends, and the last reading is made."""


@dataclass(frozen=True)
class ExpiringQueue:
    """A queue without a consumer, whose node is killed and started while a publisher goes on.

    Attributes:
        rate: messages per second; ttl: seconds that each of them lives.
        length, counters: seconds after the start, or the begin, of the first refresh of the length and of the counters.
        unlisted: seconds after the start in which the queue is not in the list.
        empty: seconds after the start in which a queue that is being recovered counts as empty.
        lives_again: what was recovered lives a whole TTL from the start on.
    """

    rate: float
    ttl: float
    length: float = 1.0
    counters: float = 3.0
    unlisted: float = 0.0
    empty: float = 0.0
    lives_again: bool = False

    def published(self, t, since=0.0):
        """Messages published up to a second."""
        times = (number / self.rate for number in range(int(min(t, QUIET) * self.rate) + 1))
        return [at for at in times if since <= at <= t and not KILLED <= at < STARTED + 1]

    def ready(self, t):
        """Messages that are in the queue at a second."""

        def ends(at):
            recovered = at < KILLED < at + self.ttl and t >= STARTED
            return STARTED + self.ttl if recovered and self.lives_again else at + self.ttl

        return sum(ends(at) > t for at in self.published(t))

    def lost(self, t):
        """Messages that have expired by a second."""
        return len(self.published(t)) - self.ready(t)

    def shown(self, t):
        """The parts of a snapshot at a second; while the node is away, the last ones remain."""
        t = KILLED - 0.1 if KILLED <= t < STARTED else t
        begin = STARTED if t >= STARTED else 0.0
        away = t - begin
        length, counters = (
            None if away < first else begin + first + (away - first) // REFRESH * REFRESH
            for first in (self.length, self.counters)
        )
        ready = None if length is None else 0 if begin and away < self.empty else self.ready(length)
        count = 0 if counters is None else len(self.published(counters, begin))
        shown = queue(
            "ledger",
            messages_ready=ready,
            messages_unacked=None if ready is None else 0,
            stats=stats(publish=count) if count else stats(),
            arguments={"x-message-ttl": int(self.ttl * 1000)},
            consumers=0,
        )
        node = Node(name=NODE, running=True, uptime_seconds=away if begin else 1000.0 + t)
        return {**frame(*(() if begin and away < self.unlisted else (shown,))), "nodes": (node,)}


def counted(model, until):
    """What all findings about the queue count at a second."""
    found = flat(look(film(model.shown, until=until)).findings)
    losses = [each.facts for each in found if each.rule in COUNTING]
    return sum(each.get("lost", each.get("purged", 0)) - each.get("accounted", 0) for each in losses)


MODELS = (
    ExpiringQueue(20.0, 30.0),
    ExpiringQueue(20.0, 30.0, length=3.0, counters=1.0),
    ExpiringQueue(20.0, 30.0, length=0.0, counters=4.9),
    ExpiringQueue(20.0, 30.0, length=4.9, counters=0.0),
    ExpiringQueue(20.0, 30.0, unlisted=6.0),
    ExpiringQueue(20.0, 30.0, empty=6.0),
    ExpiringQueue(20.0, 30.0, lives_again=True, length=0.0, counters=4.9),
    ExpiringQueue(7.0, 10.0, length=4.0, counters=0.5),
    ExpiringQueue(60.0, 1.0, length=0.5, counters=4.0),
    ExpiringQueue(13.0, 20.0, length=0.5, counters=4.0, unlisted=6.0, empty=11.0),
)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_no_more_is_counted_than_was_lost_by_then(model):
    """Less may be: what happens between the last reading and the kill is seen by nobody."""
    assert [] == [at for at in range(50, END + 1, 15) if counted(model, at) > model.lost(at)]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_loss_is_counted_after_the_start(model):
    """At least half of what was published since then and has expired."""
    assert 2 * counted(model, END) >= len(model.published(END, STARTED))
