"""The broker refreshes the two counters of an exchange apart: what one refresh explains is no loss."""

import pytest

from ackscope.snapshot import Part
from tests.unit.diagnosis.pictures import film, look, snapshot
from tests.unit.diagnosis.publishers.films import busy_queue, exchange, of, publisher, shop

RULE = "pub-unroutable-dropped"


def beside(name, rate, late, *, lost=3.3, loses=0.0, since=16.0, every=15):
    """One exchange loses all of a client that started a while ago; another one routes all, and counts that later.

    The other one loses `loses` messages a second as well.
    """

    def frame(t):
        read = t - t % every
        dropped = lambda at: int(lost * max(0.0, at - since))  # noqa: E731
        received = int(900 + rate * read)
        routed = received - int(rate * late if 29 < read < 31 else 0) - int(loses * max(0.0, read - since))
        listed = (
            exchange(name, received=received, routed=routed, type="topic"),
            exchange("refunds.failed", received=dropped(read), routed=0, type="fanout"),
        )
        return {
            "queues": (busy_queue(t, rate),),
            "channels": (publisher(t, rate=lost, before=0, counters={"drop_unroutable": dropped(t)}),),
            "connections": (shop(),),
            "exchanges": Part(value=listed, at=snapshot(read).taken, seconds=0.1),
        }

    return frame


@pytest.mark.parametrize(
    ("name", "rate", "late", "lost"), [("amq.topic", 5.0, 5.0, 3.3), ("events", 40.0, 4.0, 12.0), ("a", 8.0, 5.9, 3.3)]
)
def test_one_interval_that_one_refresh_explains_is_no_loss(name, rate, late, lost):
    """Neither while the other loss is new, nor later."""
    for until in (30, 35, 40, 60, 120):
        named = {subject for _, _, subject in of(look(film(beside(name, rate, late, lost=lost), until=until)), RULE)}
        assert name not in named


@pytest.mark.parametrize(("rate", "loses"), [(5.0, 5.0), (5.0, 2.0), (40.0, 12.0)])
def test_what_adds_up_over_two_intervals_is_a_loss(rate, loses):
    """A part of its messages, or all of them."""
    named = {subject for _, _, subject in of(look(film(beside("events", rate, 0, loses=loses), until=60)), RULE)}
    assert "events" in named
