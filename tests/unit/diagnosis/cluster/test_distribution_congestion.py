import pytest

from ackscope.topology import NodeLink
from tests.unit.diagnosis.cluster.scenes import ONE, TWO, node, reported
from tests.unit.diagnosis.pictures import film, look

RULE = "distribution-congestion"


def busy(rate, *, fell_at=None):
    """Return a film of a link with this many bytes per second in one direction."""

    def frame(t):
        sent = rate * t if fell_at is None or t < fell_at else rate * (t - fell_at)
        link = NodeLink(peer=TWO, send_bytes=int(sent), recv_bytes=int(t))
        return {"nodes": (node(ONE, links=(link,)), node(TWO, links=(NodeLink(peer=ONE, send_bytes=int(t)),)))}

    return frame


@pytest.mark.parametrize(
    ("until", "expected"),
    [(10, []), (20, [("info", "node", ONE)]), (70, [("warning", "node", ONE)])],
    ids=["too soon", "a burst perhaps", "a minute"],
)
def test_a_full_link_is_reported_and_a_warning_after_a_minute(until, expected):
    """Replicas that catch up fill it for a while."""
    assert expected == reported(look(film(busy(110e6), until=until)), RULE)


@pytest.mark.parametrize("frame", [busy(20e6), busy(110e6, fell_at=60.0)], ids=["busy", "reconnected"])
def test_a_link_with_room_or_a_new_connection_is_not_reported(frame):
    """Counters that fell belong to a new connection."""
    assert [] == reported(look(film(frame, until=65)), RULE)


def test_links_without_counters_prove_nothing():
    """Absent is not zero."""
    frame = {"nodes": (node(ONE, links=(NodeLink(peer=TWO),)), node(TWO))}

    assert [] == reported(look(film(lambda _: frame, until=30)), RULE)
