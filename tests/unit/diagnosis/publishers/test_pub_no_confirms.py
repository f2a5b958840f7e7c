from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, film, look
from tests.unit.diagnosis.publishers.films import CHANNEL, PEER, busy_queue, facts, findings, of, publisher, shop

RULE = "pub-no-confirms"


def blind(t, *, queue=None, nodes=None, through=None, **fields):
    """A publisher without confirms to a durable queue."""
    picture = {
        "queues": (busy_queue(t, **(queue or {})),),
        "channels": (publisher(t, **{"confirm": False, **fields}),),
        "connections": (shop(**(through or {})),),
    }
    return {**picture, "nodes": nodes} if nodes else picture


def test_a_publisher_without_confirms_is_a_risk():
    """One finding for its virtual host, with the client and its rate."""
    verdict = look(film(blind, until=30))

    assert [("info", "vhost", "/")] == of(verdict, RULE)
    expected = {"channels": 1, "publish_rate": 10.0, "clients": ["shop"], "nodes_down": []}
    assert expected == {key: facts(verdict, RULE)[key] for key in expected}
    assert (CHANNEL,) == findings(verdict, RULE)[0].involved.channels


def test_many_are_one_finding():
    """A static risk is reported once for each virtual host."""

    def frame(t):
        peers = [f"10.0.0.9:{50000 + number} -> 10.0.0.1:5672" for number in range(20)]
        return {
            **blind(t),
            "channels": tuple(publisher(t, confirm=False, peer=peer) for peer in peers),
            "connections": tuple(shop(peer) for peer in peers),
        }

    verdict = look(film(frame, until=30))

    assert [("info", "vhost", "/")] == of(verdict, RULE)
    assert 20 == facts(verdict, RULE)["channels"]


def test_with_a_node_down_it_is_a_warning():
    """Messages in flight to it are lost unnoticed."""
    nodes = (Node(name=NODE, running=True), Node(name="rabbit@two", running=False))
    verdict = look(film(lambda t: blind(t, nodes=nodes), until=30))

    assert [("warning", "vhost", "/")] == of(verdict, RULE)
    assert ["rabbit@two"] == facts(verdict, RULE)["nodes_down"]


def test_a_node_that_drains_is_no_loss():
    """It was put into maintenance mode on purpose."""
    nodes = (Node(name=NODE, running=True), Node(name="rabbit@two", running=False, being_drained=True))

    assert [("info", "vhost", "/")] == of(look(film(lambda t: blind(t, nodes=nodes), until=30)), RULE)


def test_who_is_not_reported():
    """Confirms, transactions, unknown mode, idle, few messages, other protocols, no durable queue, our probes."""
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
