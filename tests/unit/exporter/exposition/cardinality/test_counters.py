"""Counters over time: the increase over all series equals the true increase."""

import random
from collections import defaultdict
from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.snapshot import MessageStats, Part, Queue, Snapshot
from exporter.exposition.cardinality.selection import OTHER
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.settings import MetricsSettings

PATHS = ("stats.publish", "stats.ack")


class Prometheus:
    """Sums up `increase` per series, over an unlimited range."""

    def __init__(self):
        self.last = {}
        self.risen = defaultdict(float)

    def scrape(self, series):
        """Take one scrape: (name, path) -> value; None for a counter of a shown object without events yet."""
        for (name, path), value in series.items():
            last = self.last.get((name, path))
            if value is None:
                self.last.setdefault((name, path), 0)
                continue
            if last is not None:
                self.risen[path] += value - last if value >= last else value
            self.last[name, path] = value

    def forget(self, name):
        """The object is deleted: a later one of its name begins a new history."""
        for path in PATHS:
            self.last.pop((name, path), None)


class Broker:
    """Queues that appear, vanish, restart, fall silent and move, with the true counts."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.queues = {}
        self.totals = {}
        self.truth = defaultdict(float)

    def step(self, shown):
        """Return the queues one poll later, and the names of those that vanished.

        Only queues that are shown fall silent: of one that is silent when its series begins, and then tells, nobody
        can see what it rose by.
        """
        vanished = []
        for name in list(self.queues):
            choices = ("idle", "idle", "rise", "rise", "rise", "restart", "vanish", *["silent"] * (name in shown))
            what = self.chance.choice(choices)
            if what == "vanish":
                vanished.append(name)
                del self.queues[name], self.totals[name]
            elif what != "idle":
                self._change(name, what)
        for name in self.chance.sample("abcdefgh", 2):
            if name not in self.queues and name not in vanished:
                included = self.chance.choice((None, 0, 7, 1000))
                self.queues[name] = Queue(
                    vhost="/", name=name, type="classic", consumers=0, messages=0, stats=MessageStats(publish=included)
                )
                self.totals[name] = {"stats.publish": included or 0, "stats.ack": 0}
        return list(self.queues.values()), vanished

    def _change(self, name, what):
        counts = self.totals[name]
        values = {}
        for path in PATHS:
            if what == "silent":
                values[path.removeprefix("stats.")] = None
                continue
            old = counts[path]
            new = self.chance.randrange(old) if what == "restart" and old else old + self.chance.choice((0, 1, 50))
            self.truth[path] += new - old if new >= old else new
            counts[path] = values[path.removeprefix("stats.")] = new
        messages = self.chance.randrange(100)
        self.queues[name] = replace(
            self.queues[name], messages=messages, messages_ready=messages, stats=MessageStats(**values)
        )


def series(selection):
    """Return the value of each series of a selection by (name, path)."""
    chosen = selection.of("shop").queues
    made = {(it.name, path): chosen.count(it, it.key, path) for it in chosen.shown for path in PATHS}
    return {**made, **{(OTHER, path): chosen.remainder.get(path) for path in PATHS}}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("pause", [5, 400])
def test_nothing_is_counted_twice_or_lost(seed, pause):
    """Queues may move between their own series and the remainder; the sum of all series rises by the true count."""
    broker, prometheus = Broker(seed), Prometheus()
    chooser = TopK(MetricsSettings(max_queues=seed % 4, exclude_queues="/h$"))
    before, shown = {}, set()
    for number in range(120):
        queues, vanished = broker.step(shown)
        for name in vanished:
            prometheus.forget(name)
        now = Instant(wall=0.0, mono=float(pause * number))
        selection = chooser.select([Snapshot(cluster="shop", taken=now, queues=Part(value=tuple(queues)))])
        seen = series(selection)
        prometheus.scrape(seen)
        remainder = selection.of("shop").queues.remainder
        counts = selection.of("shop").totals.counts.get("classic", {})

        assert all(remainder[path] >= before.get(path, 0) for path in PATHS if path in remainder)
        for path in PATHS:
            assert broker.truth[path] == prometheus.risen[path]
            assert broker.truth[path] == counts.get(path, 0)
        before, shown = {**before, **remainder}, {it.name for it in selection.of("shop").queues.shown}
