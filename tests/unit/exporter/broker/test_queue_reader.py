from contextlib import contextmanager
from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.errors import BrokerError
from exporter.broker.client import ManagementClient
from exporter.broker.queue_details import MAX_SUSPECTS
from exporter.broker.queue_reader import (
    QueueBudget,
    QueueHints,
    QueueMode,
    QueueReader,
    TotalsUnsupported,
    require_totals,
)
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.replay import Replay
from tests.unit.exporter.broker.server import json, serve

VERSION = (4, 3)
NOTHING = QueueBudget(share=0.0, min_interval=5, totals_interval=5, details_share=0.0)
LITTLE = QueueBudget(share=1e-9, min_interval=5, totals_interval=20, details_share=0.0)
PLENTY = QueueBudget(share=1e-9, min_interval=5, totals_interval=20, details_share=100.0)
"""Too little to read in full, and enough for any statistics."""
ALL = QueueBudget(share=1e9, min_interval=5, totals_interval=5, details_share=1.0)


class SetClock:
    """A clock that the test sets."""

    def __init__(self):
        self.mono = 1000.0

    def now(self):
        """The simulated time."""
        return Instant(wall=1.7e9 + self.mono, mono=self.mono)


class ReplayedBroker:
    """A reader of a replayed broker, with a simulated clock."""

    def __init__(self, server, replay):
        self.server, self.replay, self.clock = server, replay, SetClock()
        self.client = ManagementClient(ManagementSettings(url=server.url))
        self.reader = QueueReader(self.client, self.clock)

    def step(self, budget, later=0.0, **hints):
        """One step, some seconds after the previous one."""
        self.clock.mono += later
        values = {"queue_count": len(self.replay.queues), **hints}
        return self.reader.step(budget, QueueHints(**values), VERSION)

    def next_mode(self, share, full_interval, full_max_share):
        """The mode of the next step, given the queues' share and the limits for full readings."""
        limits = {"full_interval": full_interval, "full_max_share": full_max_share}
        return self.reader.next_mode(replace(LITTLE, share=share, **limits), QueueHints())

    def queue(self, reading, name):
        """One queue of a reading."""
        return next(queue for queue in reading.value if queue.name == name)


@contextmanager
def reading(count, routes=None):
    """A reader of a broker with this many queues."""
    replay = Replay(f"q{number:05}" for number in range(count))
    with serve({}) as server:
        server.routes = replay.routes()
        server.routes.update(routes or {})
        found = ReplayedBroker(server, replay)
        yield found
        found.client.close()


def test_a_small_broker_is_read_in_full_every_time():
    """With all statistics, as of the reading."""
    with reading(3) as it:
        first, second = it.step(NOTHING), it.step(ALL, 5)

    assert (QueueMode.FULL, 0, [1, 1]) == (it.reader.mode, it.replay.totals, it.replay.pages)
    assert [None] * 3 == [queue.details_at for queue in first.value]
    assert [7] * 3 == [queue.stats.publish for queue in second.value]
    assert it.reader.coverage() is None


def test_one_page_is_read_in_full_whatever_it_costs():
    """Totals would not be cheaper: its interval is stretched instead."""
    with reading(500) as it:
        it.step(NOTHING)
        it.step(LITTLE, 5)

    assert (QueueMode.FULL, 0) == (it.reader.mode, it.replay.totals)


def test_some_pages_are_read_in_full_where_rarely_is_enough():
    """While the broker is idle, within the share of a core for full readings."""
    with reading(1999) as it:
        it.step(NOTHING)
        cost = it.reader.full_cost
        modes = [it.next_mode(1e-9, 120, most) for most in (cost / 119, cost / 121)]
        moving = it.next_mode(1e-9, 0, 1.0)

    assert [QueueMode.FULL, QueueMode.TOTALS] == modes
    assert QueueMode.TOTALS is moving


def test_some_pages_are_read_in_full_again_once_rarely_is_enough():
    """With a margin that prevents flapping."""
    with reading(1999) as it:
        it.step(NOTHING)
        it.step(PLENTY, 5)
        it.step(PLENTY, 5)
        swept, cost = it.reader.details.sweeps, it.reader.full_cost
        modes = [it.next_mode(1e-9, 120, most) for most in (cost / 119, cost / 121)]

    assert swept
    assert [QueueMode.FULL, QueueMode.TOTALS] == modes


def test_many_pages_are_read_in_full_only_if_that_fits_every_interval():
    """Totals are fresher than rare full readings."""
    with reading(2000) as it:
        it.step(PLENTY)
        it.step(PLENTY, 5)
        it.step(ALL, 5)
        modes = [it.next_mode(share, 120, 1.0) for share in (1.0, 1e-9)]

    assert [QueueMode.FULL, QueueMode.TOTALS] == modes


def test_a_broker_too_expensive_in_full_is_read_by_totals():
    """It starts with the statistics of the full reading, and their time."""
    with reading(501) as it:
        full = it.step(NOTHING)
        it.replay.queues["q00007"]["messages_ready"] = 4
        totals = it.step(LITTLE, 5)

    assert (QueueMode.TOTALS, 1, [1, 2]) == (it.reader.mode, it.replay.totals, it.replay.pages)
    assert len(full.value) == len(totals.value) == 501
    assert {full.at} == {queue.details_at for queue in totals.value if queue.name != "q00007"}
    assert (4, 7) == (it.queue(totals, "q00007").messages, it.queue(totals, "q00007").stats.publish)
    assert totals.at.mono == 1005


def test_a_large_broker_is_not_read_in_full_at_first():
    """Its size is in the overview, or in its first page."""
    for queue_count in (2000, None):
        with reading(2000) as it:
            first = it.step(NOTHING, queue_count=queue_count)

        assert (QueueMode.TOTALS, 1) == (it.reader.mode, it.replay.totals)
        assert it.replay.pages == ([] if queue_count else [1])
        assert {(0, None)} == {(queue.messages, queue.details_at) for queue in first.value}


def test_totals_are_read_at_their_interval():
    """Steps in between read statistics and return no reading."""
    with reading(2000) as it:
        first = it.step(PLENTY)
        between = [it.step(PLENTY, 5) for _ in range(3)]
        second = it.step(PLENTY, 5)

    assert [None] * 3 == between
    assert it.replay.totals == 2
    assert (1000, 1020) == (first.at.mono, second.at.mono)
    assert {queue.details_at is None for queue in second.value} == {False}


def test_suspicious_queues_are_read_first():
    """Queues with a backlog or redelivery, right after the totals; a bounded number."""
    with reading(2000) as it:
        for number in range(100):
            it.replay.queues[f"q{number + 1000:05}"]["messages_ready"] = 9
        it.step(NOTHING)
        it.replay.requested.clear()
        last = it.step(PLENTY, 20, redelivering={("/", "q00003")})
        suspects = set(it.replay.requested)

    assert len(it.replay.requested) == MAX_SUSPECTS
    assert "q00003" in suspects
    assert {f"q{number + 1000:05}" for number in range(100)} >= suspects - {"q00003"}
    assert suspects <= {queue.name for queue in last.value if queue.details_at is not None}


def test_nothing_is_read_beyond_the_budget():
    """Totals continue; a sweep goes no further than the accumulated budget."""
    with reading(2000) as it:
        it.step(NOTHING)
        for _ in range(20):
            it.step(LITTLE, 5)

    assert it.replay.pages == []
    assert it.replay.totals == 6


def test_an_overdrawn_budget_delays_the_next_page():
    """A page cost more than was accumulated: the next one waits until the debt is paid."""
    with reading(2000) as it:
        it.step(NOTHING)
        it.step(QueueBudget(share=1e-9, min_interval=5, totals_interval=1e6, details_share=1e-12), 5)
        for _ in range(20):
            it.step(QueueBudget(share=1e-9, min_interval=5, totals_interval=1e6, details_share=1e-12), 5)

    assert it.replay.pages == [1]


def test_a_sweep_goes_on_where_it_stopped_and_restarts_once_a_period():
    """Page by page, from the first to the last."""
    with reading(2000) as it:
        for _ in range(9):
            it.step(PLENTY, 5)

    assert it.replay.pages == [1, 2, 3, 4] * (len(it.replay.pages) // 4)
    assert 2 <= it.reader.details.sweeps <= 3
    assert (2000, 2000) == (it.reader.coverage().queues, it.reader.coverage().detailed)


def test_new_queues_are_read_before_their_page():
    """Once most queues were read, never having been read is a sign."""
    with reading(2000) as it:
        it.step(PLENTY)
        it.step(PLENTY, 5)
        it.replay.queues["q90000"] = {}
        it.replay.requested.clear()
        last = it.step(PLENTY, 15)

    assert it.replay.requested == ["q90000"]
    assert it.queue(last, "q90000").consumers == 0


def test_deleted_queues_are_removed():
    """With the next totals, or with a failed attempt to read one of them."""
    with reading(2000) as it:
        it.replay.queues["q00001"]["messages_ready"] = it.replay.queues["q00002"]["messages_ready"] = 1
        it.step(NOTHING)
        deleted = it.replay.details_of("q00001")
        del it.replay.queues["q00001"]
        route = it.server.routes["/api/queues"]
        totals = [it.replay.totals_of(name) for name in it.replay.queues]

        def once(request):
            json([*totals, deleted])(request)
            it.server.routes["/api/queues"] = route

        it.server.routes["/api/queues"] = once
        last = it.step(PLENTY, 20)

    assert len(last.value) == 1999
    assert "q00001" not in {queue.name for queue in last.value}


def test_it_is_read_in_full_again_if_that_fits():
    """The sweeps show what it would cost."""
    with reading(2000) as it:
        it.step(PLENTY)
        it.step(PLENTY, 5)
        before_totals = it.reader.full_cost
        full = it.step(ALL, 5)

    assert before_totals > 0
    assert QueueMode.FULL is it.reader.mode
    assert {None} == {queue.details_at for queue in full.value}


def test_a_failing_page_does_not_affect_the_totals():
    """The error is reported, and the next attempt is delayed; the totals stay fresh."""
    with reading(2000) as it:
        route = it.server.routes["/api/queues"]

        def no_pages(request):
            if "page=" in request.path:
                it.replay.pages.append("failed")
                json({"error": "x", "reason": "boom"}, 500)(request)
            else:
                route(request)

        it.server.routes["/api/queues"] = no_pages
        first = it.step(PLENTY)
        failed = it.reader.details.error
        for _ in range(4):
            last = it.step(PLENTY, 5)
        attempts = len(it.replay.pages)
        it.server.routes["/api/queues"] = route
        it.step(PLENTY, 60)
        it.step(PLENTY, 5)

    assert failed is None or "500" in failed
    assert (1000, 1020) == (first.at.mono, last.at.mono)
    assert 1 <= attempts <= 2
    assert it.reader.details.error is None
    assert it.reader.details.sweeps >= 1


def test_one_failing_queue_does_not_affect_the_others():
    """The others are read."""
    with reading(2000) as it:
        for name in ("q00001", "q00002", "q00003"):
            it.replay.queues[name]["messages_ready"] = 1
        get = it.server.routes.get
        odd = json({"error": "x", "reason": "boom"}, 500)
        it.server.routes.get = lambda path, default=None: odd if path.endswith("q00002") else get(path, default)
        it.step(NOTHING)
        it.step(QueueBudget(share=1e-9, min_interval=5, totals_interval=5, details_share=1.0), 5)

    assert {"q00001", "q00003"} <= set(it.replay.requested)


def test_a_broker_without_statistics_is_read_by_totals():
    """Single queues have no more data; pages are read for their policies, one sweep per period."""
    with reading(3) as it:
        it.replay.queues["q00001"]["messages_ready"] = 4
        first = it.step(PLENTY, statistics=False)
        for _ in range(4):
            it.step(PLENTY, 5, statistics=False)

    assert [0, 4, 0] == [queue.messages for queue in first.value]
    assert ([], 2) == (it.replay.requested, it.replay.totals)
    assert it.reader.coverage() is None


def test_statistics_that_are_enabled_are_read_again():
    """In full if that fits."""
    with reading(3) as it:
        for _ in range(3):
            it.step(PLENTY, 5, statistics=False)
        it.step(ALL, 5, statistics=True)

    assert QueueMode.FULL is it.reader.mode


@pytest.mark.parametrize(
    ("payload", "queue_count"),
    [
        ([], True),
        ([{"name": "q", "type": "classic", "messages": 0}], True),
        ([{"name": "s", "type": "stream"}], True),
        ([{"name": "s", "type": "stream"}, {"name": "q", "type": "classic"}], False),
        ([{"name": "q", "type": "classic", "messages": 0, "memory": 9}], False),
        ([{"name": "q", "type": "classic", "messages": 0, "message_stats": {}}], False),
    ],
)
def test_what_totals_look_like(payload, queue_count):
    """Neither full statistics (the broker ignored the parameters) nor names only."""
    try:
        found = list(require_totals(payload)) == payload
    except TotalsUnsupported:
        found = False
    assert queue_count == found


def test_a_broker_without_support_for_totals_is_read_in_full():
    """Totals are not requested again until the version changes."""
    with reading(2000) as it:
        route = it.server.routes["/api/queues"]

        def ignorant(request):
            if "disable_stats" in request.path:
                it.replay.totals += 1
                json([it.replay.details_of(name) for name in it.replay.queues])(request)
            else:
                route(request)

        it.server.routes["/api/queues"] = ignorant
        readings = [it.step(LITTLE, 5) for _ in range(3)]
        unsupported = it.reader.totals_unsupported
        it.reader.step(LITTLE, QueueHints(queue_count=2000), (4, 4))

    assert [2000] * 3 == [len(found.value) for found in readings]
    assert unsupported
    assert it.replay.totals == 2


def test_failing_totals_are_an_error_of_the_reading():
    """They are requested again with the next step."""
    with reading(2000) as it:
        it.step(NOTHING)
        route = it.server.routes["/api/queues"]
        it.server.routes["/api/queues"] = json({"error": "x", "reason": "boom"}, 500)
        with pytest.raises(BrokerError, match="500"):
            it.step(LITTLE, 20)
        it.server.routes["/api/queues"] = route
        again = it.step(LITTLE, 5)

    assert again.at.mono == 1025


def test_an_overrun_of_the_totals_is_deducted_from_the_pages():
    """But one outlier does not stop the sweep for long."""
    with reading(2000) as it:
        details = it.reader.details
        details.charge_overrun(9.0, 0.2)
        details.accrue(0.02, 100, it.clock.now())
        it.clock.mono += 39
        details.accrue(0.02, 100, it.clock.now())
        details.sweep(VERSION, it.clock.mono + 1e6)
        poor = list(it.replay.pages)
        it.clock.mono += 2
        details.accrue(0.02, 100, it.clock.now())
        details.sweep(VERSION, it.clock.mono + 1e6)

    assert [] == poor
    assert it.replay.pages[:1] == [1]
