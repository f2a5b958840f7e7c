"""Bindings from exchange to exchange to queue, whose keys exclude each other."""

import itertools

import pytest

from ackscope.findings import flat
from ackscope.topology import Binding, Bindings, Exchange, Policy
from diagnosis.routes import matches, overlap
from tests.unit.diagnosis.pictures import channel, connection, film, full_text, look, queue, stats, text

RULE = "binding-keys-disjoint"


def bound(begin, end, key="", kind="queue", vhost="/"):
    """A binding; the destination is a queue unless its name ends with .x."""
    kind = "exchange" if end.endswith(".x") else kind
    return Binding(vhost=vhost, source=begin, destination=end, destination_type=kind, routing_key=key)


ORDERS = (
    bound("orders.x", "orders", "order.#"),
    bound("orders.x", "audit.x", "order.#"),
    bound("audit.x", "audit.log", "orders.#"),
)


def frame(t, bindings=ORDERS, *, rate=8.0, types=(), of=None, at=None, more=None, vhost="/"):
    """Messages are published to `orders.x`; `at` are fields of single exchanges, `of` those of the last queue."""
    published, kinds = int(100 + rate * t), dict(types)
    names = sorted(
        {each.source for each in bindings} | {each.destination for each in bindings if ".x" in each.destination}
    )
    exchanges = []
    for name in names:
        counters = stats(publish_in=published, publish_out=published) if name == "orders.x" else stats()
        fields = {"type": kinds.get(name, "topic"), "stats": counters, **(at or {}).get(name, {})}
        exchanges.append(Exchange(vhost=vhost, name=name, **fields))
    ends = sorted({each.destination for each in bindings if each.destination_type == "queue"} - {"orders"})
    taken = stats(publish=published, deliver=published, ack=published)
    return {
        "bindings": Bindings(listed=tuple(bindings)),
        "exchanges": tuple(exchanges),
        "queues": (
            queue("orders", vhost=vhost, stats=taken),
            *(queue(name, vhost=vhost, **{"stats": stats(), **(of or {})}) for name in ends),
        ),
        **(more or {}),
    }


def reported(made, until=20):
    """The findings of this rule, as causes."""
    return [each for each in look(film(made, until=until)).findings if each.rule == RULE]


def test_two_patterns_overlap_if_a_key_matches_both():
    """Compared with all keys of up to five words."""
    patterns = ["", *(".".join(each) for size in (1, 2, 3) for each in itertools.product("ab*#", repeat=size))]
    keys = ["", *(".".join(each) for size in range(1, 6) for each in itertools.product("ab", repeat=size))]
    taken = {pattern: {key for key in keys if matches(pattern, key)} for pattern in patterns}

    for one, other in itertools.product(patterns[::2], patterns):
        assert bool(taken[one] & taken[other]) == overlap(one, other), (one, other)


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [
        ("order.#", "orders.#", ("topic", "topic")),
        ("eu.*", "eu.*.created", ("topic", "topic")),
        ("*.paid", "#.refunded", ("topic", "topic")),
        ("created", "order.*", ("direct", "topic")),
        ("order.*", "order", ("topic", "direct")),
        ("a", "b", ("direct", "direct")),
        ("order.#", "orders.#", ("x-delayed-message", "topic")),
    ],
)
@pytest.mark.parametrize(("rate", "vhost"), [(8.0, "/"), (0.3, "shop")])
def test_a_queue_that_no_key_can_reach_is_a_warning(first, second, kinds, rate, vhost):
    """The first exchange routes each message to another queue, so nothing is counted as dropped."""
    bindings = (
        bound("orders.x", "orders", "#", vhost=vhost),
        bound("orders.x", "stats.x", first, vhost=vhost),
        bound("stats.x", "stats", second, vhost=vhost),
    )
    delayed = {"orders.x": {"arguments": {"x-delayed-type": "topic"}}}
    types = list(zip(("orders.x", "stats.x"), kinds, strict=True))
    (finding,) = reported(lambda t: frame(t, bindings, rate=rate, types=types, at=delayed, vhost=vhost))

    assert ("warning", "stats.x", vhost) == (finding.severity.value, finding.subject.name, finding.subject.vhost)
    assert [("stats", first, second)] == [
        (each["queue"], each["first_key"], each["second_key"]) for each in finding.facts["paths"]
    ]
    assert "no routing key matches both" in text(finding).summary


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"bindings": (*ORDERS[:2], bound("audit.x", "audit.log", "#"))}, "all keys"),
        ({"bindings": (*ORDERS[:2], bound("audit.x", "audit.log", "*.placed"))}, "a key in common"),
        ({"bindings": (*ORDERS, bound("audit.x", "audit.log", "order.*"))}, "another binding beside it"),
        ({"bindings": (*ORDERS, bound("returns.x", "audit.x", "orders.#"))}, "another exchange before it"),
        ({"bindings": (*ORDERS, bound("orders.x", "audit.log", "order.paid"))}, "bound to the first exchange as well"),
        ({"types": [("audit.x", "headers")]}, "headers"),
        ({"types": [("audit.x", "fanout")]}, "fanout"),
        ({"types": [("orders.x", "x-consistent-hash")]}, "a plugin"),
        ({"at": {"audit.x": {"stats": stats(publish_in=3)}}}, "clients publish to it"),
        ({"at": {"orders.x": {"arguments": {"alternate-exchange": "audit.x"}}}}, "an alternate exchange"),
        ({"of": {"arguments": {"x-dead-letter-exchange": "audit.x"}}}, "a dead-letter exchange"),
        ({"of": {"messages_ready": 2}}, "has messages"),
        ({"of": {"stats": stats(publish=4, deliver=4, ack=4)}}, "got messages"),
        ({"of": {"consumers": 0}}, "nobody waits"),
        ({"bindings": (ORDERS[0], bound("audit.x", "audit.log", "orders.#"))}, "no exchange before it"),
    ],
)
def test_a_path_that_may_be_taken_is_not_reported(changes, reason):
    """Each differs from the fault in one thing."""
    assert [] == reported(lambda t: frame(t, **changes)), reason


def test_an_alternate_exchange_may_be_set_by_policy():
    """Then messages with any key may come."""
    rule = Policy(
        vhost="/", name="rest", pattern=".*", apply_to="exchanges", definition={"alternate-exchange": "audit.x"}
    )
    at = {"orders.x": {"policy": "rest"}}

    assert [] == reported(lambda t: frame(t, at=at, more={"policies": (rule,)}))


@pytest.mark.parametrize("changes", [{"rate": 0.0}, {"more": {"connections": (connection(protocol="AMQP 1.0"),)}}])
def test_it_is_information_while_no_message_is_seen_or_clients_publish_uncounted(changes):
    """Clients of AMQP 1.0 may publish to the exchange in the middle."""
    (finding,) = reported(lambda t: frame(t, **changes))

    assert "info" == finding.severity.value


def test_all_queues_of_one_exchange_are_one_finding():
    """Whatever their keys, and over three exchanges."""
    bindings = (
        bound("orders.x", "all.x", "order.#"),
        bound("all.x", "audit.x", "#"),
        bound("audit.x", "log", "orders.#"),
        bound("audit.x", "archive", "invoice"),
        bound("audit.x", "live", "order.placed"),
    )
    (finding,) = reported(lambda t: frame(t, bindings))

    assert ("audit.x", ["archive", "log"]) == (finding.subject.name, finding.facts["queues"])
    assert "'orders.x' by 'order.#', then 'audit.x' by 'orders.#' to queue 'log'" in full_text(finding)


def test_bindings_in_a_circle_end():
    """Each exchange is bound to the other."""
    circle = (*ORDERS, bound("audit.x", "orders.x", "orders.#"))

    assert ["audit.x"] == [each.subject.name for each in reported(lambda t: frame(t, circle))]


def test_many_circles_are_not_judged():
    """Fourteen exchanges that are all bound to one another have more paths than can be followed."""
    names = [f"mesh{number}.x" for number in range(14)]
    mesh = tuple(bound(one, other, "#") for one in names for other in names if one != other)

    assert [] == reported(lambda t: frame(t, (*mesh, bound("mesh0.x", "log", "orders.#"))))


def test_what_the_first_exchange_drops_is_a_consequence_if_it_leads_nowhere_else():
    """Messages are dropped for the same reason."""
    peer = "10.0.0.9:50009 -> 10.0.0.1:5672"

    def made(t):
        dropped = int(100 + 8 * t)
        sender = channel(f"{peer} (1)", consumer_count=0, stats=stats(publish=dropped, drop_unroutable=dropped))
        lost = {"orders.x": {"stats": stats(publish_in=dropped)}}
        more = {"channels": (sender,), "connections": (connection(peer),)}
        return frame(t, ORDERS[1:], at=lost, more=more)

    verdict = look(film(made, until=60))
    (cause,) = [each for each in verdict.findings if each.rule == RULE]

    assert ["pub-unroutable-dropped"] == [each.rule for each in cause.consequences]
    assert "pub-unroutable-dropped" not in {each.rule for each in verdict.findings}
    assert len(list(flat([cause]))) == 2
