"""A poller of a real broker that always stops with its block, so that it cannot disturb later tests."""

from contextlib import contextmanager
from queue import SimpleQueue

from ackscope.clock import SystemClock
from exporter.polling.poller import Poller


@contextmanager
def polled(cluster, management, poll):
    """The poller, and the queue of its snapshots."""
    snapshots = SimpleQueue()
    poller = Poller(cluster, management, poll, SystemClock(), snapshots.put)
    poller.start()
    try:
        yield poller, snapshots
    finally:
        poller.stop()
