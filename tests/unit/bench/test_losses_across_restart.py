"""Which loss the benchmark compares a count across a restart with: the one of the same moment."""

from types import SimpleNamespace

import pytest

from ackscope.errors import Unreachable
from bench.diagnosis.losses_across_restart import RestartKind, across_restart

PIECE = "bench.diagnosis.losses_across_restart"
KILLED, STARTED, QUIET, END = 35, 40, 70, 100
"""Seconds at which the node is killed and started, the publishers end, and the last finding is read."""


class ExpiringScene:
    """A queue with 100 confirmed messages, which all expire at one second, and the finding that counts them.

    Attributes:
        now: seconds since the begin.
    """

    def __init__(self, expires, counts):
        self.now, self.expires, self.counts = 0.0, expires, counts
        address = "amqp://guest:guest@127.0.0.1:5672/"
        self.lab = SimpleNamespace(broker="3.10.8", folder="", nodes=[SimpleNamespace(amqp=address)])

    def findings(self):
        """Return the finding once it counts."""
        subject = {"name": "ledger.restart.expiring"}
        found = {"rule": "ttl-expiry-loss", "subject": subject, "facts": {"lost": 100}, "consequences": []}
        return [found] if self.now >= self.counts else []

    def unsure(self):
        """Return nothing."""
        return []

    def sleep(self, seconds):
        """Let time pass."""
        self.now += seconds

    def monotonic(self):
        """Return the time."""
        return self.now

    def connect(self, *_):
        """Return a connection; the node has none between kill and start."""
        if KILLED <= self.now < STARTED:
            raise Unreachable("no AMQP connection")
        count = 0 if self.now >= self.expires else 100
        declared = SimpleNamespace(method=SimpleNamespace(message_count=count))
        channel = SimpleNamespace(queue_declare=lambda *_, **__: declared, queue_delete=lambda *_: None)
        return SimpleNamespace(channel=lambda: channel, close=lambda: None)


def played(monkeypatch, *, expires, counts):
    """The row of that queue."""
    stage = ExpiringScene(expires, counts)
    control = SimpleNamespace(load=lambda _: SimpleNamespace(kill=lambda _: None, restart=lambda _: None))
    monkeypatch.setattr(f"{PIECE}.time", stage)
    monkeypatch.setattr(f"{PIECE}.connect", stage.connect)
    monkeypatch.setattr(f"{PIECE}.Control", control)
    monkeypatch.setattr(f"{PIECE}.RESTART_KINDS", (RestartKind(name="expiring", rules=("ttl-expiry-loss",)),))
    monkeypatch.setattr(f"{PIECE}._Traffic.start", lambda self: setattr(self, "confirmed", 100))
    monkeypatch.setattr(f"{PIECE}._Traffic.join", lambda *_: None)
    (row,) = across_restart(stage)
    assert stage.now == END
    return row


@pytest.mark.parametrize(
    ("expires", "counts"),
    [(20, 30), (50, 60), (80, 85), (KILLED, KILLED + 2)],
    ids=["before the kill", "after the start", "after the publishers ended", "while the node is away"],
)
def test_a_count_of_what_was_lost_by_then_is_right(monkeypatch, expires, counts):
    """Messages expire also when nobody publishes any more."""
    row = played(monkeypatch, expires=expires, counts=counts)

    assert (100, 0, 100, []) == (row.lost, row.perhaps, row.most, row.false)


@pytest.mark.parametrize(
    ("expires", "counts"),
    [(30, 20), (60, 50), (QUIET, 45), (85, 80), (200, 50)],
    ids=["before the kill", "after the start", "as the publishers end", "after they ended", "never lost"],
)
def test_a_count_before_the_loss_is_false(monkeypatch, expires, counts):
    """Also if that many are lost later."""
    row = played(monkeypatch, expires=expires, counts=counts)

    assert ["100 counted, at most 0 lost"] == row.false
