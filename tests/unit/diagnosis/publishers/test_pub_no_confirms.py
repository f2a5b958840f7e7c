from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, film, look, told
from tests.unit.diagnosis.publishers.films import PEER, busy_queue, of, publisher, shop, whole

RULE = "pub-no-confirms"


def blind(t, *, queue=None, nodes=None, through=None, **fields):
    """A publisher without confirms to a durable queue."""
    picture = {
        "queues": (busy_queue(t, **(queue or {})),),
        "channels": (publisher(t, **{"confirm": False, **fields}),),
        "connections": (shop(**(through or {})),),
    }
    return {**picture, "nodes": nodes} if nodes else picture


def test_a_publisher_without_confirms_is_a_risk_and_no_more():
    """One finding for its virtual host, which names it and its rate."""
    verdict = look(film(blind, until=30))

    assert [("info", "vhost", "/")] == of(verdict, RULE)
    assert "1 channel in vhost '/' publishes 10/s without confirms ('shop')" in told(whole(verdict, RULE)[0])


def test_many_are_one_finding():
    """A static risk is told once a virtual host."""

    def frame(t):
        peers = [f"10.0.0.9:{50000 + number} -> 10.0.0.1:5672" for number in range(20)]
        return {
            **blind(t),
            "channels": tuple(publisher(t, confirm=False, peer=peer) for peer in peers),
            "connections": tuple(shop(peer) for peer in peers),
        }

    verdict = look(film(frame, until=30))

    assert [("info", "vhost", "/")] == of(verdict, RULE)
    assert "20 channels" in whole(verdict, RULE)[0].summary


def test_with_a_node_down_it_is_a_warning():
    """What was on its way there is gone without a trace."""
    nodes = (Node(name=NODE, running=True), Node(name="rabbit@two", running=False))
    verdict = look(film(lambda t: blind(t, nodes=nodes), until=30))

    assert [("warning", "vhost", "/")] == of(verdict, RULE)
    assert "rabbit@two is down" in whole(verdict, RULE)[0].summary


def test_a_node_that_drains_is_no_loss():
    """It is taken out on purpose."""
    nodes = (Node(name=NODE, running=True), Node(name="rabbit@two", running=False, being_drained=True))

    assert [("info", "vhost", "/")] == of(look(film(lambda t: blind(t, nodes=nodes), until=30)), RULE)


def test_who_is_not_told():
    """Confirms, transactions, mode unknown, nothing lately, few messages, other protocols, nothing to keep."""
    changes = (
        {"confirm": True},
        {"transactional": True},
        {"confirm": None},
        {"transactional": None},
        {"rate": 0.0},
        {"before": 1, "rate": 1.0},
        {"through": {"protocol": "Direct 0-9-1"}},
        {"queue": {"durable": False}},
        {"queue": {"exclusive": True}},
        {"through": {"client_name": "ackscope-probe confirm"}},
    )
    for change in changes:
        assert [] == of(look(film(lambda t, change=change: blind(t, **change), until=30)), RULE), change


def test_channels_of_two_vhosts_are_two_findings():
    """Each has its own owners."""
    other = f"{PEER[:-4]}5673"

    def frame(t):
        picture = blind(t)
        return {
            "queues": (*picture["queues"], busy_queue(t, vhost="billing")),
            "channels": (*picture["channels"], publisher(t, confirm=False, peer=other, vhost="billing")),
            "connections": (*picture["connections"], shop(other, vhost="billing")),
        }

    assert [("info", "vhost", "/"), ("info", "vhost", "billing")] == sorted(of(look(film(frame, until=30)), RULE))
