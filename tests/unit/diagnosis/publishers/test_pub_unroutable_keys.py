import pytest

from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings
from tests.unit.diagnosis.pictures import film, look, snapshot, text
from tests.unit.diagnosis.publishers.films import busy_queue, exchange, facts, findings, of, publisher, shop

DROPPED, RETURNED = "pub-unroutable-dropped", "pub-unroutable-returned"
NEW, OLD = "10.0.0.3:50007 -> b", "10.0.0.4:50008 -> b"
BEGAN = 30.0


def beside(
    *,
    kind="headers",
    rate=10.0,
    others=10.0,
    before=0,
    began=BEGAN,
    bindings=1,
    client="order-api-v2",
    pauses=None,
    counter="drop_unroutable",
):
    """Nothing that one publisher sends from second 30 on matches a binding; what the other sends always does.

    `before` is what the first had sent to a queue until then; the other publishes nothing in the seconds `pauses`.
    """

    def frame(t):
        read = t - t % 15

        def lost(at):
            return int(rate * max(0.0, at - BEGAN))

        def passed(at):
            still = 0.0 if pauses is None else max(0.0, min(at, pauses[1]) - pauses[0])
            return int(others * (at - still))

        bound = tuple(
            Binding(
                vhost="/", source="orders.h", destination="prio", destination_type="queue", routing_key=f"k{number}"
            )
            for number in range(bindings)
        )
        mine = publisher(t, rate=0.0, before=before + lost(t), peer=NEW, counters={counter: lost(t)} if lost(t) else {})
        other = publisher(t, rate=0.0, before=passed(t), peer=OLD)
        total = exchange(
            "orders.h", received=before + passed(read) + lost(read), routed=before + passed(read), type=kind
        )
        return {
            "queues": (busy_queue(t),),
            "channels": (mine, other) if t >= BEGAN or before else (other,),
            "connections": (shop(NEW, client_name=client), shop(OLD, client_name="order-api-v1")),
            "exchanges": Part(value=(total,), at=snapshot(read).taken, seconds=0.1),
            "bindings": Bindings(listed=bound),
        }

    return frame


@pytest.mark.parametrize(
    ("kind", "severity"),
    [("headers", "warning"), ("direct", "warning"), ("x-consistent-hash", "warning"), ("topic", "info")],
)
@pytest.mark.parametrize(("rate", "others"), [(10.0, 10.0), (0.5, 90.0), (40.0, 2.0)])
def test_a_publisher_whose_messages_match_no_binding_while_others_do(kind, severity, rate, others):
    """A wrong key or header of its own: a warning after a minute, that stays. Nobody has to subscribe to each topic."""
    frame = beside(kind=kind, rate=rate, others=others)

    assert [("info", "exchange", "orders.h")] == of(look(film(frame, until=BEGAN + 40)), DROPPED)
    for after in (85, 250, 700):
        verdict = look(film(frame, until=BEGAN + after))
        assert [(severity, "exchange", "orders.h")] == of(verdict, DROPPED), after
        found = facts(verdict, DROPPED)
        expected = {"losers": ["order-api-v2"], "only_theirs": True, "never_routed": True, "routed_before": False}
        assert expected == {key: found[key] for key in expected}


def test_the_exchange_did_not_route_its_messages_before():
    """It routed those of the other publisher."""
    cause = text(findings(look(film(beside(), until=BEGAN + 90)), DROPPED)[0]).cause

    assert "although" not in cause
    assert "It routes other messages, but none of 'order-api-v2'" in cause


def test_a_publisher_whose_messages_were_routed_before_is_distinguished():
    """Its binding was removed while those of others are there."""
    verdict = look(film(beside(kind="direct", before=3000), until=BEGAN + 90))

    assert [("warning", "exchange", "orders.h")] == of(verdict, DROPPED)
    assert (False, True) == tuple(facts(verdict, DROPPED)[key] for key in ("never_routed", "routed_before"))
    assert "although it routed messages before" in text(findings(verdict, DROPPED)[0]).cause


def test_a_pause_of_the_others_does_not_make_it_critical():
    """An exchange that never routed these messages has not stopped when the others pause."""
    frame = beside(kind="direct", pauses=(100.0, 130.0))

    assert {"warning"} == {
        severity for until in (120, 130) for severity, *_ in of(look(film(frame, until=until)), DROPPED)
    }


def test_one_of_two_instances_is_not_accused_with_the_other():
    """Both have one name, as during a canary deployment."""
    verdict = look(film(beside(client="order-api-v1"), until=BEGAN + 90))

    assert (1, 2) == tuple(facts(verdict, DROPPED)[key] for key in ("losing_channels", "publishing_channels"))
    assert "all messages on 1 of 2 channels of 'order-api-v1'" in text(findings(verdict, DROPPED)[0]).summary


BY_HEADERS = '{"arguments": {"x-match": "all", "NAME": "VALUE"}}'


@pytest.mark.parametrize(
    ("kind", "bindings", "words", "body"),
    [
        ("headers", 1, "Its 1 binding did not match the headers", BY_HEADERS),
        (
            "headers",
            2,
            "None of its 2 bindings matched the headers",
            '{"arguments": {"x-match": "all", "NAME": "VALUE"}}',
        ),
        ("direct", 3, "None of its 3 bindings matched the routing keys", '{"routing_key": "KEY"}'),
        ("topic", 1, "Its 1 binding did not match the routing keys", '{"routing_key": "KEY"}'),
        ("fanout", 1, "it had no binding that leads to a queue", '{"routing_key": ""}'),
        ("headers", 0, "The headers exchange has no binding", BY_HEADERS),
    ],
)
@pytest.mark.parametrize(("rule", "counter"), [(DROPPED, "drop_unroutable"), (RETURNED, "return_unroutable")])
def test_the_text_fits_the_type_of_the_exchange(kind, bindings, words, body, rule, counter):
    """A headers exchange ignores the routing key, and compares names, values and types."""
    frame = beside(kind=kind, bindings=bindings, counter=counter)
    found = text(findings(look(film(frame, until=BEGAN + 90)), rule)[0])
    commands = [step.command or "" for step in found.steps]

    assert words in found.cause
    assert any(body in command for command in commands)
    assert (kind == "headers") == any("destination_name arguments" in command for command in commands)
    assert (kind == "headers" and bindings > 0) == ("the string" in found.cause)
    assert "{{" not in found.cause + found.summary
