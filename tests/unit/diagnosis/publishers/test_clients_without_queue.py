"""An exchange without bindings loses what it receives, and a client asks for a queue that does not exist (404)."""

import pytest

from ackscope.findings import flat
from ackscope.snapshot import Node
from ackscope.topology import Binding, Bindings
from tests.unit.diagnosis.clients.loops import looping
from tests.unit.diagnosis.pictures import NODE, PEER, WALL, film, full_text, look, queue, text
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of, publisher, shop

DROPPED, MISSING, CHURN = "pub-unroutable-dropped", "pub-missing-exchange", "channel-churn"
STORE = "10.0.0.5:51111 -> b"


def unbound(
    *,
    name="cart.events",
    kind="topic",
    client="cart-sync",
    asks="cart.sync",
    tag=38,
    rate=15.0,
    cycle=0.5,
    uptime=90_000.0,
    queues=("crm.sync", "ledger.post"),
    more=(),
    sent=None,
    received=None,
    bound=(),
):
    """A publisher sends to an exchange without bindings; `client` asks for a queue, with a consumer tag of its own.

    `more` are exchanges without bindings that get as many messages; None instead of `client`: nobody asks.
    """
    error = len(f"NOT_FOUND - no queue '{asks}' in vhost '/'")

    def frame(t):
        lost = int(rate * t)
        made = looping(
            t,
            rate=cycle if client else 0.0,
            sent=sent or 35 + error,
            received=received or 46 + len(asks) + tag,
            client_name=client or "quiet",
        )
        names = (name, *more)
        return {
            **made,
            "nodes": (Node(name=NODE, running=True, uptime_seconds=uptime + t),),
            "queues": tuple(queue(each, consumers=1) for each in queues),
            "connections": (*made["connections"], shop(STORE, client_name="storefront", connected_at=WALL)),
            "channels": (
                *made["channels"],
                *(
                    publisher(
                        t,
                        rate=rate,
                        before=0,
                        peer=STORE if number == 0 else f"10.0.1.{number}:1 -> b",
                        counters={"drop_unroutable": lost} if lost else {},
                    )
                    for number, _ in enumerate(names)
                ),
            ),
            "exchanges": tuple(exchange(each, received=lost, type=kind) for each in names),
            "bindings": Bindings(counts={}, listed=bound),
        }

    return frame


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": "telemetry", "client": "telemetry_ingest-7f9c", "asks": "telemetry.ingest", "rate": 0.4},
        {"kind": "fanout", "name": "orders", "client": "billing", "asks": "invoices", "tag": 0, "uptime": 9.0},
        {"kind": "headers", "cycle": 5.0, "rate": 600.0},
        {"name": "events", "client": "indexer", "asks": "search.idx", "uptime": 30.0},
    ],
    ids=["same word", "pod", "no tag, one word", "fast", "the node has just started"],
)
def test_a_client_that_asks_for_a_missing_queue_needs_what_the_exchange_loses(fields):
    """A warning after a minute, and its loop is a consequence."""
    frame = unbound(**fields)
    verdict = look(film(frame, until=100))
    name = fields.get("name", "cart.events")

    assert [("warning", "exchange", name)] == of(verdict, DROPPED)
    (finding,) = findings(verdict, DROPPED)
    assert CHURN in [each.rule for each in flat(finding.consequences)]
    assert [PEER] == [each["connection"] for each in finding.facts["clients_without_queue"]]
    assert "harmless" not in text(finding).summary
    assert "asks for a queue that does not exist (404" in text(finding).cause
    assert [("info", "exchange", name)] == of(look(film(frame, until=45)), DROPPED)


def test_the_missing_queue_is_named_like_its_client_and_the_restart_is_mentioned():
    """With the separator of the other queues; the client does not publish to a missing exchange."""
    verdict = look(film(unbound(uptime=15.0), until=100))

    assert [] == of(verdict, MISSING)
    (finding,) = findings(verdict, CHURN)
    assert (["cart.sync"], 9, True) == tuple(
        finding.facts["not_found"][key] for key in ("named", "queue_bytes", "queue_first")
    )
    words = " ".join(full_text(finding).split())
    assert "asks for a queue that does not exist" in words
    assert "such as 'cart.sync' (named like the client; there is none)" in words
    assert "A node started 115 s ago: queues that are not durable" in text(findings(verdict, DROPPED)[0]).cause


def test_a_queue_that_was_bound_is_named():
    """Its binding was read before it went."""
    gone = Binding(vhost="/", source="other", destination="till.main", destination_type="queue", routing_key="x")
    verdict = look(film(unbound(client="kiosk", asks="till.main", bound=(gone,)), until=100))

    assert [] == of(verdict, MISSING)
    assert ["till.main"] == findings(verdict, CHURN)[0].facts["not_found"]["bound"]


def test_without_a_name_both_are_said():
    """The bytes are those of a consumer, and those of a small message."""
    verdict = look(film(unbound(client="kiosk", asks="till.main"), until=100))

    (finding,) = findings(verdict, MISSING)
    assert 9 == finding.facts["queue_bytes"]
    assert "or consumes from a queue that does not exist" in text(finding).summary


@pytest.mark.parametrize(
    "fields",
    [
        {"client": None},
        {"client": "kiosk", "asks": "till.main"},
        {"client": "kiosk", "asks": "till.main", "uptime": 30.0, "more": ("audit",)},
        {"received": 46 + 9 + 38 + 200},
        {"sent": 35 + len("ACCESS_REFUSED - queue 'crm.sync' in vhost '/' in exclusive use"), "received": 46 + 8 + 38},
        {"client": "acme-till", "asks": "acme.till", "name": "acme.events", "queues": ("acme.a", "acme.b", "acme.c")},
    ],
    ids=["nobody asks", "another name", "several exchanges", "publishes", "exclusive use", "name of the company"],
)
def test_events_that_nobody_asks_for_stay_information(fields):
    """A client that is refused elsewhere does not show that somebody needs them."""
    verdict = look(film(unbound(**fields), until=280))

    assert {"info"} == {severity for severity, *_ in of(verdict, DROPPED)}
    assert all(each.facts["clients_without_queue"] == [] for each in findings(verdict, DROPPED))


def test_a_start_of_the_node_is_no_fault():
    """Nobody asks, so it stays information, and the reader learns what may be missing."""
    verdict = look(film(unbound(client=None, uptime=30.0), until=100))

    assert [("info", "exchange", "cart.events")] == of(verdict, DROPPED)
    assert 130.0 == facts(verdict, DROPPED)["restarted_seconds"]


def test_a_channel_that_is_not_answered_yet_is_no_other_request():
    """Seen on 3.10.8: within eight cycles it makes 14 bytes more, and another rule took the request for a publish."""
    asking = 46 + len("cart.sync") + 38
    findings_then = [
        {each.rule for each in look(film(unbound(received=asking + more), until=60)).findings} for more in (0, 2)
    ]

    assert all(MISSING not in rules for rules in findings_then)
