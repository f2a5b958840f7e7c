"""A poller of a test server, observed by a test."""

from contextlib import contextmanager
from queue import SimpleQueue

from ackscope.clock import SystemClock
from exporter.broker.settings import ManagementSettings
from exporter.polling.poller import Poller
from exporter.polling.settings import PollSettings
from tests.unit.exporter.broker.server import broker, json

INTERVAL = 0.05
DEADLINE = 20
UNBOUND = 1000.0
"""A budget that stretches nothing."""


def quickly(interval=INTERVAL, budget=UNBOUND):
    """Settings that no user may have: many polls per second."""
    return PollSettings.model_construct(interval=interval, budget=budget)


def whole_broker(version):
    """Routes that answer like the recorded broker of this version, for every family."""
    return {
        "/api/exchanges": json([]),
        "/api/bindings": json([]),
        "/api/vhosts": json([]),
        "/api/policies": json([]),
        "/api/vhost-limits": json([]),
        "/api/feature-flags": json([]),
        **broker(version),
    }


class Watch:
    """A running poller and the snapshots it publishes."""

    def __init__(self, url, clock, polling, **settings):
        self.snapshots = SimpleQueue()
        management = ManagementSettings(url=url, **settings)
        self.poller = Poller("shop", management, polling, clock, self.snapshots.put)

    def next(self):
        """The next snapshot."""
        return self.snapshots.get(timeout=DEADLINE)

    def until(self, condition):
        """The first snapshot from now on that meets the condition."""
        for _ in range(2000):
            snapshot = self.next()
            if condition(snapshot):
                return snapshot
        raise AssertionError("the condition never held")


@contextmanager
def polling(server, clock=None, poll=None, **settings):
    """A poller of a test server, running while the block runs."""
    watch = Watch(server.url, clock or SystemClock(), poll or quickly(), **settings)
    watch.poller.start()
    try:
        yield watch
    finally:
        watch.poller.stop()


def whole(snapshot):
    """Every part was read."""
    return all(part.value is not None and part.error is None for part in snapshot.parts.values())
