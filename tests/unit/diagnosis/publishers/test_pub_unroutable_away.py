from dataclasses import replace

import pytest

from ackscope.findings import QueueRef
from ackscope.snapshot import Node, Part
from ackscope.topology import Binding, Bindings
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import NODE, connection, consumer, film, look, queue, snapshot, stats, text
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of, publisher, shop, suppressed

DROPPED, RETURNED = "pub-unroutable-dropped", "pub-unroutable-returned"
BEGAN = 40.0


def absent(t, cycle, away, times):
    """Seconds until t in which the queue was away; it leaves every `cycle` seconds."""
    return sum(max(0.0, min(away, t - BEGAN - cycle * number)) for number in range(times) if t > BEGAN + cycle * number)


def restarting(
    *,
    rate=12.0,
    cycle=40.0,
    away=9.0,
    times=100,
    kind="direct",
    name="meter.x",
    returned=False,
    of_queue=None,
    wrong=0.0,
    flaps=True,
    named="meter.raw",
):
    """A queue that leaves with its consumer; the publisher goes on; another one may use a wrong key all the time."""
    counter = "return_unroutable" if returned else "drop_unroutable"
    queue_fields = {"auto_delete": True, "durable": True, **(of_queue or {})}

    def gap(t):
        return absent(t, cycle, away, times)

    def is_here(t):
        return gap(t + 0.001) == gap(t)

    def frame(t):
        born = max((at for at in range(int(t) + 1) if not is_here(at - 1) and is_here(at)), default=0)
        life, read, bound = t - born, t - t % 15, t - t % 30
        through = int(rate * life)
        here = queue(named, stats=stats(publish=through, deliver=through, ack=through), **queue_fields)
        peer = f"10.0.0.7:{50001 + (born if flaps else 0)} -> b"
        client = connection(peer, client_name="meter-store")
        consumes = consumer(named, connection_name=peer, channel_name=f"{peer} (1)")
        lost = int(rate * gap(t))
        sent, dropped = int(rate * read), int(rate * gap(read)) + int(wrong * read)
        binding = Binding(vhost="/", source=name, destination=named, destination_type="queue", routing_key="raw")
        stranger = "10.0.0.5:51111 -> b"
        return {
            "nodes": (Node(name=NODE, running=True, uptime_seconds=90_000.0 + t),),
            "queues": (here,) if is_here(t) else (),
            "consumers": (consumes,) if is_here(t) else (),
            "connections": (
                shop(client_name="meter-gw"),
                *((client,) if is_here(t) else ()),
                *((shop(stranger, client_name="meter-bad"),) if wrong else ()),
            ),
            "channels": (
                publisher(t, rate=rate, before=0, counters={counter: lost} if lost else {}),
                *(
                    (publisher(t, rate=wrong, before=0, peer=stranger, counters={counter: int(wrong * t)}),)
                    if wrong
                    else ()
                ),
            ),
            "exchanges": Part(
                value=(
                    exchange(
                        name, received=sent + int(wrong * read), routed=sent + int(wrong * read) - dropped, type=kind
                    ),
                ),
                at=snapshot(read).taken,
                seconds=0.1,
            ),
            "bindings": Part(
                value=Bindings(listed=(binding,) if name and is_here(bound) else ()),
                at=snapshot(bound).taken,
                seconds=0.1,
            ),
        }

    return frame


@pytest.mark.parametrize("name", ["meter.x", ""])
@pytest.mark.parametrize(("cycle", "away", "rate"), [(40.0, 9.0, 12.0), (25.0, 6.0, 3.0), (60.0, 14.0, 150.0)])
def test_a_queue_that_is_away_again_and_again_is_a_warning(cycle, away, rate, name):
    """Each restart of its consumer loses messages, so the finding is there between two restarts as well."""
    frame = restarting(cycle=cycle, away=away, rate=rate, name=name)
    for until in range(int(BEGAN + 3 * cycle), int(BEGAN + 5 * cycle), 5):
        verdict = look(film(frame, until=until))

        assert [("warning", "exchange", name)] == of(verdict, DROPPED), until
        found = facts(verdict, DROPPED)
        assert (["meter.raw"], "auto_delete", ["meter-gw"]) == (
            found["away"],
            found["away_reason"],
            found["clients"],
        )
        assert 2 <= found["away_times"] <= 5
        assert 0 < found["lost"] <= rate * absent(until, cycle, away, 100) + 1


def test_the_text_says_what_deletes_the_queue_and_who_brings_it_back():
    """The bindings match while the queue is there, so they are not blamed."""
    finding = findings(look(film(restarting(), until=BEGAN + 100)), DROPPED)[0]
    said = text(finding)

    assert "while queue 'meter.raw' was away, " in said.summary
    assert "auto-delete" in said.cause
    assert "comes back with 'meter-store'" in said.cause
    assert "match" not in said.cause
    assert "durable and without auto-delete" in said.steps[0].text
    assert (QueueRef("/", "meter.raw"),) == finding.involved.queues


def test_its_restarting_consumer_is_a_consequence():
    """One cause, one finding."""
    verdict = look(film(restarting(cycle=15.0, away=6.0), until=BEGAN + 115))

    cause = next(each for each in verdict.findings if each.rule == DROPPED)
    assert "consumer-flapping" in [each.rule for each in cause.consequences]
    assert "consumer-flapping" not in [each.rule for each in verdict.findings]


def test_one_deployment_is_information_and_ends():
    """The queue is away once."""
    frame = restarting(times=1)
    soon, later = (look(film(frame, until=BEGAN + after)) for after in (25, 120))

    assert [("info", "exchange", "meter.x")] == of(soon, DROPPED)
    assert ["meter.raw"] == facts(soon, DROPPED)["away"]
    assert [] == of(later, DROPPED)


def test_a_queue_that_does_not_come_back_is_no_absence():
    """It is critical like any exchange that has routed nothing for a minute, and the queue is named."""
    verdict = look(film(restarting(times=1, away=500.0), until=BEGAN + 100))

    assert [("critical", "exchange", "meter.x")] == of(verdict, DROPPED)
    assert ([], ["meter.raw"]) == (facts(verdict, DROPPED)["away"], facts(verdict, DROPPED)["gone"])


@pytest.mark.parametrize(
    ("kind", "fields", "severity"),
    [
        ("topic", {}, "warning"),
        ("fanout", {}, "warning"),
        ("topic", {"durable": False}, "info"),
        ("fanout", {"durable": False, "exclusive": True, "auto_delete": False}, "info"),
        ("direct", {"durable": False, "exclusive": True, "auto_delete": False}, "warning"),
    ],
)
def test_a_subscriber_with_a_transient_queue_asks_only_for_what_comes_while_it_is_there(kind, fields, severity):
    """A durable queue is made for work, and each key of a direct exchange is meant for a queue."""
    verdict = look(film(restarting(kind=kind, of_queue=fields, times=2), until=BEGAN + 75))

    assert [(severity, "exchange", "meter.x")] == of(verdict, DROPPED)
    assert (severity == "info") == ("harmless" in text(findings(verdict, DROPPED)[0]).summary)


TRANSIENT = ({"durable": False}, {"durable": False, "exclusive": True, "auto_delete": False})


@pytest.mark.parametrize("fields", TRANSIENT, ids=["auto-delete", "exclusive"])
@pytest.mark.parametrize(
    ("kind", "cycle", "away", "rate"),
    [("fanout", 28.0, 8.0, 10.0), ("topic", 40.0, 9.0, 300.0), ("headers", 22.0, 9.0, 1.5)],
)
def test_a_subscriber_that_comes_back_at_once_each_time_needs_all_messages(cycle, away, rate, fields, kind):
    """From the third time on; then it is no deployment."""
    frame = restarting(cycle=cycle, away=away, rate=rate, kind=kind, of_queue=fields, named="board", name="presence")
    (finding,) = findings(look(film(frame, until=int(BEGAN + 3.5 * cycle))), DROPPED)

    assert ("warning", ["board"]) == (finding.severity.value, finding.facts["away"])
    assert "harmless" not in text(finding).summary
    assert "Its consumer came back soon each time, so it probably needs these messages" in text(finding).cause


@pytest.mark.parametrize(
    ("until", "fields"),
    [
        (60, {"times": 1}),
        (75, {"times": 2}),
        (170, {"cycle": 40.0, "away": 30.0}),
        (230, {"cycle": 75.0, "away": 65.0}),
        (150, {"cycle": 40.0, "away": 1.6}),
    ],
    ids=["deployment", "failed start", "looks in now and then", "once a minute", "few messages"],
)
@pytest.mark.parametrize("queue_fields", TRANSIENT, ids=["auto-delete", "exclusive"])
def test_who_looks_at_events_now_and_then_needs_no_others(until, fields, queue_fields):
    """A person with a debug consumer, a job that samples events, and one deployment."""
    verdict = look(film(restarting(kind="fanout", of_queue=queue_fields, **fields), until=BEGAN + until))

    assert {"info"} >= {severity for severity, *_ in of(verdict, DROPPED)}


@pytest.mark.parametrize("kind", ["fanout", "topic", "headers"])
def test_one_look_at_a_part_names_the_queue_that_may_have_been_away(kind):
    """Only what the exchange compares is blamed: a fanout exchange has no keys, and a headers exchange ignores them."""

    def frame(t):
        made = restarting(times=1, kind=kind, of_queue={"durable": False})(t)
        here = restarting(times=0, kind=kind, of_queue={"durable": False})(t)
        return {**made, "queues": here["queues"], "bindings": here["bindings"]}

    (finding,) = findings(
        look(film(frame, start=30, until=60, every=30), thresholds=Thresholds.as_if_lasting()), DROPPED
    )
    said = text(finding)

    assert "'meter.raw' was perhaps away meanwhile, or nobody has to get these messages" in said.summary
    assert "'meter.raw' was away: this queue goes when its client leaves" in said.cause
    assert ("key" in said.summary + said.cause) == (kind == "topic")


@pytest.mark.parametrize(
    ("fields", "reason", "word"),
    [
        ({"exclusive": True}, "exclusive", "connection of its client closes"),
        ({"auto_delete": False, "arguments": {"x-expires": 2000}}, "expires", "after 2 s without a consumer"),
        ({"auto_delete": False}, "deleted", "deleted and declared again"),
    ],
)
def test_what_deletes_the_queue_is_named(fields, reason, word):
    """By its settings; without one a client or a person does."""
    finding = findings(look(film(restarting(of_queue=fields), until=BEGAN + 100)), DROPPED)[0]

    assert reason == finding.facts["away_reason"]
    assert word in text(finding).cause


def test_one_look_does_not_prove_an_absence():
    """The queue is there in both snapshots. It goes with its client, so its binding is not blamed."""

    def frame(t):
        made = restarting(times=1)(t)
        here = restarting(times=0)(t)
        return {**made, "queues": here["queues"], "bindings": here["bindings"]}

    window = film(frame, start=30, until=60, every=30)
    finding = findings(look(window, thresholds=Thresholds.as_if_lasting()), DROPPED)[0]

    assert ([], ["meter.raw"]) == (finding.facts["away"], finding.facts["temporary"])
    assert "When these messages came, no binding matched" in text(finding).cause
    assert "or 'meter.raw' was away" in text(finding).cause


def test_returned_messages_are_reported_as_returned():
    """The publisher sets `mandatory`."""
    verdict = look(film(restarting(returned=True), until=BEGAN + 100))

    assert [] == of(verdict, DROPPED)
    assert [("warning", "exchange", "meter.x")] == of(verdict, RETURNED)


@pytest.mark.parametrize("wrong", [4.0, 12.0])
def test_a_wrong_key_is_not_explained_by_a_queue_that_comes_and_goes(wrong):
    """Its publisher loses messages all the time; that the queue was away is said beside."""
    verdict = look(film(restarting(wrong=wrong), until=BEGAN + 100))

    found = facts(verdict, DROPPED)
    assert ([], ["meter.raw"]) == (found["away"], found["also_away"])
    assert "meter-bad" in found["losers"]


def test_a_publisher_of_another_exchange_does_not_hide_it():
    """It loses all of its messages there."""

    def frame(t):
        made, read = restarting()(t), t - t % 15
        peer = "10.0.0.6:5 -> b"
        other = exchange("events", received=int(5 * read), routed=0, type="fanout")
        return {
            **made,
            "channels": (
                *made["channels"],
                publisher(t, rate=5.0, before=0, peer=peer, counters={"drop_unroutable": int(5 * t)}),
            ),
            "connections": (*made["connections"], shop(peer, client_name="announcer")),
            "exchanges": replace(made["exchanges"], value=(*made["exchanges"].value, other)),
        }

    named = {each.subject.name: each.facts["away"] for each in findings(look(film(frame, until=BEGAN + 100)), DROPPED)}

    assert {"meter.x": ["meter.raw"], "events": []} == named


def test_settings_name_exchanges_whose_messages_may_reach_no_queue():
    """They are suppressed, with the reason."""
    thresholds = Thresholds.model_validate({"publishers": {"unroutable_by_design": ["^meter"]}})
    verdict = look(film(restarting(), until=BEGAN + 100), thresholds=thresholds)

    assert [] == of(verdict, DROPPED)
    assert ("meter.x", "by_design") in suppressed(verdict, DROPPED)


def test_the_binding_that_left_with_the_queue_is_no_fault_of_its_own():
    """It is information at first, and once it is known to come back it is not reported."""
    first = look(film(restarting(away=35.0, cycle=90.0), until=BEGAN + 25))
    again = look(film(restarting(away=35.0, cycle=90.0), until=BEGAN + 90 + 25))

    assert {"info"} == {severity for severity, *_ in of(first, "binding-missing")}
    assert [] == of(again, "binding-missing")
    assert [("warning", "exchange", "meter.x")] == of(again, DROPPED)


@pytest.mark.parametrize("session", ["mqtt-subscription-valve-12qos1", "mqtt-subscription-door.7qos0"])
def test_a_session_of_mqtt_is_kept_by_its_client(session):
    """Its queue is the broker's own: nobody can declare it, and a device has no log."""
    frame_of = restarting(kind="topic", name="amq.topic", named=session, of_queue={"exclusive": True, "durable": True})
    (finding,) = findings(look(film(frame_of, until=150)), DROPPED)
    steps = " ".join(text(finding).next_steps)

    assert "clean session off" in steps
    assert "subscribe with QoS 1" in steps
    assert "declare it once" not in steps
    assert "Read the log" not in steps
    assert "an MQTT session that ends with its connection" in text(finding).cause


def test_a_queue_that_is_only_named_alike_gets_the_usual_advice():
    """The broker ends the names of its own with the quality of service."""
    (finding,) = findings(look(film(restarting(named="mqtt-subscription-log"), until=150)), DROPPED)

    assert "declare it once" in " ".join(text(finding).next_steps)
