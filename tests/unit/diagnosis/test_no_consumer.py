from dataclasses import replace

import pytest

from ackscope.findings import Certainty, QueueRef, flat
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.clients.loops import looping
from tests.unit.diagnosis.consumers.results import found, only, suppressed, urgent
from tests.unit.diagnosis.pictures import (
    PEER,
    WALL,
    channel,
    connection,
    consumer,
    evidence,
    film,
    look,
    queue,
    stats,
    text,
)


def lonely(growth=5, name="orders", **fields):
    """Return a film of a queue without consumers, with this publish rate."""

    def frame(t):
        counters = fields.get("counters", lambda t: {})(t)
        more = {key: value for key, value in fields.items() if key != "counters"}
        published = stats(**{"publish": int(100 + growth * t), **counters})
        return {"queues": (queue(name, consumers=0, messages_ready=int(100 + growth * t), stats=published, **more),)}

    return frame


def test_a_queue_that_grows_without_consumers_is_found_after_three_minutes():
    """The finding has since when, how many messages are ready and how many were published."""
    finding = only(look(film(lonely(), until=200)))

    assert ("no-consumer", "warning", "2027-01-15T08:00:00Z") == (finding.rule, finding.severity, finding.since)
    assert (1100, 1000, True, 200.0) == tuple(
        finding.facts[key] for key in ("ready", "published", "grows", "without_consumer_seconds")
    )
    assert (0, 1100) == tuple(evidence(finding, key).value for key in ("consumers", "ready"))
    assert (QueueRef("/", "orders"),) == finding.involved.queues


@pytest.mark.parametrize("name", ["orders", "pension.statements"])
@pytest.mark.parametrize(("there", "after"), [(False, []), (True, ["warning"])], ids=["declared meanwhile", "old"])
def test_a_backlog_did_not_arrive_before_its_queue_was_declared(name, there, after):
    """2,500 messages at once, then two a second: 20 min at the present rate, but the queue exists for 60 s."""

    def frame(t):
        number = int(2500 + 2 * t)
        grows = queue(name, consumers=0, messages_ready=number, stats=stats(publish=number))
        return {"queues": (grows,) if t >= 20 or there else ()}

    verdict = look(film(frame, until=80))

    assert after == [severity for rule, severity, _ in found(verdict) if severity == "warning"]
    assert there == any(each.facts["piled_up_seconds"] is not None for each in flat(verdict.findings))


def test_a_deployment_is_information_only():
    """A rolling restart takes up to two minutes without a consumer."""
    assert [] == found(look(film(lonely(), until=10)))
    assert [("no-consumer", "info", "orders")] == found(look(film(lonely(), until=15)))

    finding = only(look(film(lonely(), until=120)))

    assert "info" == finding.severity
    assert (Certainty.EARLY, 180.0) == (finding.certainty, finding.facts["warning_after_seconds"])
    assert "A deployment looks the same for up to 3 min." in text(finding).summary


@pytest.mark.parametrize(("waiting", "severity"), [(1100, "warning"), (300, "info")])
def test_a_backlog_tells_how_long_nobody_has_consumed(waiting, severity):
    """Two readings; at 5 messages/s, 1,100 messages took 220 s to arrive, 300 took one minute."""

    def frame(t):
        published = stats(publish=int(5000 + 5 * t), ack=3000)
        return {"queues": (queue("mails", consumers=0, messages_ready=int(waiting + 5 * t), stats=published),)}

    finding = only(look(film(frame, until=8, every=8), thresholds=Thresholds.brief()))

    assert ("no-consumer", severity) == (finding.rule, finding.severity)
    assert ("took 4 min to arrive" in text(finding).summary) == (severity == "warning")


def test_a_backlog_of_before_does_not_hasten_a_deployment():
    """The consumer was seen: only the time since it left counts, however much is ready."""

    def frame(t):
        published = stats(publish=int(5000 + 5 * t), ack=3000)
        ready = int(9000 + 5 * t)
        consumers = 1 if t < 30 else 0
        return {"queues": (queue("mails", consumers=consumers, messages_ready=ready, stats=published),)}

    assert [("no-consumer", "info", "mails")] == found(look(film(frame, until=60)))


def test_a_queue_that_does_not_grow_is_information_after_eight_minutes():
    """Nothing is published and nothing is taken."""
    window = film(lonely(growth=0), until=700)

    assert [("no-consumer", "info", "orders")] == found(look(window))
    assert [] == found(look(film(lonely(growth=0), until=450)))


@pytest.mark.parametrize("counter", ["get", "get_no_ack", "get_empty", "deliver_get"])
def test_a_polling_consumer_is_a_consumer(counter):
    """A client that calls basic.get is in no list of consumers."""
    frame = lonely(counters=lambda t: {counter: int(t)})

    assert [] == found(look(film(frame, until=400)))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"arguments": {"x-message-ttl": 5000, "x-dead-letter-exchange": ""}}, "delay_queue"),
        ({"effective_policy": {"message-ttl": 5000, "dead-letter-exchange": "work"}}, "delay_queue"),
        ({"name": "orders.retry"}, "benign_name"),
        ({"name": "shop.orders.dead"}, "benign_name"),
        ({"type": "stream"}, "stream"),
        ({"exclusive": True}, "exclusive_queue"),
        ({"name": "ackscope.probe.confirm.classic"}, None),
    ],
    ids=["delay by arguments", "delay by policy", "retry", "dead letters", "stream", "exclusive", "probe"],
)
def test_queues_that_need_no_consumer_are_suppressed(fields, reason):
    """With the reason; queues of the probes are not judged at all."""
    result = look(film(lonely(**fields), until=400))

    assert [] == found(result)
    assert ([reason] if reason else []) == [code for rule, _, code in suppressed(result) if rule == "no-consumer"]


def test_a_name_that_only_resembles_a_dead_letter_queue_is_judged():
    """A deadline is no dead letter."""
    window = film(lonely(name="deadlines"), until=400)

    assert [("no-consumer", "warning", "deadlines")] == found(look(window))


def test_a_dead_letter_target_is_known_by_its_source():
    """Whatever its name: another queue dead-letters to it through the default exchange."""

    def frame(t):
        source = queue("work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"})
        return {"queues": (*lonely()(t)["queues"], source)}

    result = look(film(frame, until=400))

    assert [] == found(result)
    assert [("no-consumer", "orders", "dead_letter_queue")] == suppressed(result)


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {"x-message-ttl": 3_600_000, "x-dead-letter-exchange": ""}},
        {"name": "orders.retry"},
        {"name": "shop.delay"},
    ],
    ids=["settings of a delay queue", "retry", "delay"],
)
def test_neither_settings_nor_names_excuse_a_queue_that_was_consumed(fields):
    """Its counters show deliveries, though the consumer left before the window."""
    consumed = lonely(counters=lambda _: {"deliver": 50, "ack": 50, "deliver_get": 50}, **fields)
    result = look(film(consumed, until=400))

    assert [("no-consumer", "warning", fields.get("name", "orders"))] == found(result)
    assert only(result).facts["was_consumed"]


def test_a_person_who_looks_at_a_few_messages_is_no_consumer():
    """The messages of a delay queue stay in it."""
    arguments = {"x-message-ttl": 3_600_000, "x-dead-letter-exchange": ""}
    result = look(film(lonely(counters=lambda _: {"get": 3, "ack": 3}, arguments=arguments), until=400))

    assert [("no-consumer", "orders", "delay_queue")] == suppressed(result)


def test_what_clients_polled_and_did_not_acknowledge_is_said():
    """A job polls with basic.get and ends before it acknowledges: "nobody polls it" would be false."""
    polled = {"counters": lambda _: {"get": 60, "redeliver": 30}}
    cause = text(only(look(film(lonely(**polled), until=200)))).cause

    assert "Clients polled 60 messages with basic.get before, and 30 of them came back unacknowledged" in cause
    assert "nobody polls" not in cause


def test_a_queue_of_dead_letters_that_lost_its_consumer_is_judged():
    """Somebody processed them."""

    def frame(t):
        source = queue("work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"})
        (orders,) = lonely()(t)["queues"]
        return {"queues": (replace(orders, consumers=int(t < 100)), source)}

    assert ("no-consumer", "warning", "orders") in found(look(film(frame, until=400)))


def test_a_queue_that_may_be_a_delay_queue_gets_no_advice_to_purge_or_consume():
    """It has a dead-letter exchange and no message TTL, and nothing has left it yet."""
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "due"}
    steps = text(only(look(film(lonely(arguments=arguments), until=400)))).steps

    assert not [step for step in steps if "purge" in (step.command or "") + step.text]
    assert "delay queue" in steps[0].text


def test_a_name_or_setting_that_decided_is_named():
    """The reason says that nothing else did."""
    by_name, by_setting = (
        look(film(lonely(**fields), until=400)).suppressed[0]
        for fields in (
            {"name": "orders.retry"},
            {"arguments": {"x-message-ttl": 3_600_000, "x-dead-letter-exchange": ""}},
        )
    )

    assert "The name alone" in text(by_name).because
    assert "by its settings alone" in text(by_setting).because


def test_messages_that_expire_unread_are_information_at_most():
    """Nobody ever consumed them, and the setting drops what is old."""
    ttl = {"arguments": {"x-message-ttl": 60_000}}
    assert [("no-consumer", "info", "orders")] == found(look(film(lonely(**ttl), until=400)))


def test_a_consumer_that_ended_is_remembered():
    """While the window holds it, the finding says that the queue had a consumer."""

    def frame(t):
        if t < 30:
            return {"queues": (queue(messages_ready=1, stats=stats(publish=1)),)}
        return lonely()(t)

    finding = only(look(film(frame, until=300)))

    assert finding.facts["had_consumer"]
    assert "The last consumer of the queue ended" in text(finding).cause


def test_a_connection_without_channels_is_named():
    """A former consumer whose channel the broker closed stays connected."""

    def frame(t):
        return {**lonely()(t), "connections": (connection(channels=0, client_name="billing-7"),)}

    finding = only(look(film(frame, until=200)))

    assert ["billing-7"] == finding.facts["idle_connections"]
    assert ((PEER,), ("billing-7",)) == (finding.involved.connections, finding.involved.clients)


def test_a_connection_that_was_opened_later_is_no_former_consumer():
    """The broker reports 0 channels of a new connection for up to 5 s."""

    def frame(t):
        opened = [connection("later", channels=0, client_name="shop", connected_at=WALL + 190)] if t >= 195 else []
        before = connection(channels=0, client_name="billing-7", connected_at=WALL - 60)
        return {**lonely()(t), "connections": (before, *opened)}

    assert ["billing-7"] == only(look(film(frame, until=200))).facts["idle_connections"]


def test_after_a_restart_of_the_broker_watching_starts_over():
    """A restart resets the counters."""

    def frame(t):
        published = int(5000 + 5 * t) if t < 100 else int(5 * (t - 100))
        return {"queues": (queue(consumers=0, messages_ready=100 + int(t), stats=stats(publish=published)),)}

    assert [] == urgent(look(film(frame, until=250)))
    assert [("no-consumer", "warning", "orders")] == found(look(film(frame, until=300)))


def test_an_override_for_one_queue_applies():
    """A queue that matters may warn sooner."""
    override = {"queues": "^orders$", "values": {"consumers": {"no_consumer_growing": "30s"}}}
    thresholds = Thresholds.model_validate({"overrides": [override]})

    assert [("no-consumer", "warning", "orders")] == found(look(film(lonely(), until=40), thresholds=thresholds))
    assert [] == urgent(look(film(lonely(name="others"), until=40), thresholds=thresholds))


def cancelled(growth=4.0, *, taken=50, polls=0, later=None):
    """A queue that grows, and a client whose channel consumed before, is open and has no consumer."""

    def frame(t):
        waiting = int(1 + growth * t)
        mine = stats(deliver=taken, ack=taken, **({"get": polls} if polls else {}))
        served = later is not None and t >= later
        return {
            "queues": (
                queue(
                    "stock",
                    consumers=0,
                    messages_ready=waiting,
                    stats=stats(publish=waiting + taken, deliver=taken, ack=taken),
                ),
            ),
            "channels": (channel(consumer_count=int(served), stats=mine),),
            "consumers": (consumer("elsewhere"),) if served else (),
            "connections": (connection(client_name="cache"),),
        }

    return frame


@pytest.mark.parametrize("growth", [0.5, 60.0])
def test_a_client_that_lost_its_consumer_and_stays_connected_is_no_deployment(growth):
    """So the warning does not wait for three minutes, and it names the client."""
    assert [("no-consumer", "info", "stock")] == found(look(film(cancelled(growth), until=40)))

    finding = only(look(film(cancelled(growth), until=60)))

    assert ("warning", ["cache"]) == (finding.severity, finding.facts["cancelled"])
    assert "no deployment" in text(finding).cause
    assert not any("purge" in step.text for step in text(finding).steps)


@pytest.mark.parametrize(("name", "growth"), [("stock", 7.0), ("dlq", 0.8), ("a", 90.0)])
def test_a_client_that_ignores_that_its_queue_was_deleted_and_declared_again_is_named(name, growth):
    """The new queue has had no consumer, the old one had; the client is connected and does not consume."""

    def frame(t):
        old, waiting = t < 20, int(1 + growth * max(0.0, t - 20))
        counters = stats(publish=80, deliver=80, ack=80) if old else stats(publish=waiting)
        there = queue(name, consumers=int(old), messages_ready=0 if old else waiting, stats=counters)
        mine = channel(consumer_count=int(old), stats=stats(deliver=80, ack=80))
        consuming = (consumer(name),) if old else ()
        return {
            "queues": (there,),
            "channels": (mine,),
            "consumers": consuming,
            "connections": (connection(client_name="mail"),),
        }

    finding = only(look(film(frame, until=90)))

    assert ("warning", ["mail"]) == (finding.severity, finding.facts["cancelled"])
    assert "The last consumer of the queue ended" in text(finding).cause
    assert "ignores the broker's basic.cancel" in text(finding).cause


@pytest.mark.parametrize("fields", [{"taken": 0}, {"later": 0.0}], ids=["never consumed", "consumes elsewhere"])
def test_other_open_channels_change_nothing(fields):
    """A publisher, or a client that consumes from another queue on that channel."""
    assert [] == urgent(look(film(cancelled(**fields), until=100)))


@pytest.mark.parametrize(
    ("other", "hinted"),
    [
        ("Orders.New", True),
        ("orders_new", True),
        ("orders.news", True),
        ("orders.new.2", False),
        ("bills.new", False),
    ],
)
def test_a_queue_of_nearly_the_same_name_whose_consumers_get_nothing_is_a_hint(other, hinted):
    """One of the two names is wrong; a number in the name is that of a shard."""

    def frame(t):
        growing = queue("orders.new", consumers=0, messages_ready=int(5 * t), stats=stats(publish=int(5 * t)))
        return {"queues": (growing, queue(other, consumers=1, stats=stats()))}

    finding = next(each for each in look(film(frame, until=60)).findings if each.rule == "no-consumer")

    assert (other if hinted else None) == finding.facts["similar_queue"]
    assert hinted is any("Compare the queue names" in step.text for step in text(finding).steps)


@pytest.mark.parametrize(
    ("until", "fields", "severity"),
    [
        (20, {}, "info"),
        (470, {}, "info"),
        (490, {}, "warning"),
        (490, {"ready": 9, "published": 20}, "info"),
        (490, {"ready": 40, "published": 1200}, "info"),
        (490, {"acked": 0, "ready": 1200}, "info"),
    ],
)
def test_messages_that_a_consumer_left_behind_are_found_without_any_rate(until, fields, severity):
    """A remainder, and a queue that nobody ever consumed, stay information."""
    counters = {"ready": 900, "published": 1200, "acked": 300, **fields}
    acked = {"deliver": counters["acked"], "ack": counters["acked"]} if counters["acked"] else {}
    still = queue(
        "nightly",
        consumers=0,
        messages_ready=counters["ready"],
        stats=stats(publish=counters["published"], **acked),
    )
    finding = only(look(film(lambda _: {"queues": (still,)}, until=until)))

    assert ("no-consumer", severity) == (finding.rule, finding.severity)
    early = severity == "info" and until < 480
    assert early == ("A job that runs seldom looks the same; a warning after 8 min." in text(finding).summary)


def full_at(t, *, limit=40, letters=False, falls=None, publishes=True):
    """A queue without a consumer that holds the same number of messages all the time; publishes go on."""
    ready = limit if falls is None or t < falls else limit // 10
    counters = {} if letters else {"publish": int(limit + (3 * t if publishes else 0))}
    listed = (Binding(vhost="/", source="events", destination="orders", destination_type="queue", routing_key="#"),)
    return {
        "queues": (queue(consumers=0, messages_ready=ready, stats=stats(**counters)),),
        "bindings": Bindings(listed=listed),
        "exchanges": (Exchange(vhost="/", name="events", type="topic"),),
    }


@pytest.mark.parametrize("limit", [5, 40, 3000])
def test_a_queue_that_is_full_does_not_grow(limit):
    """It holds its messages."""
    early, late = (look(film(lambda t: full_at(t, limit=limit), until=until)) for until in (60, 300))

    assert f"holds {limit:,} messages without a consumer" in text(only(early)).summary
    assert "does not grow" in text(only(late)).summary
    assert not only(early).facts["rises"]


@pytest.mark.parametrize(
    ("frame", "purge"),
    [
        (lambda t: {**full_at(t), **lonely()(t)}, True),
        (lambda t: full_at(t, letters=True, publishes=False), False),
        (lambda t: full_at(t, falls=30.0), False),
    ],
    ids=["subscribed", "dead letters", "lost most of them"],
)
def test_what_nobody_else_may_have_is_not_to_be_purged(frame, purge):
    """Dead letters, and what is left of a loss."""
    findings = [each for each in look(film(frame, until=600)).findings if each.subject.name == "orders"]
    commands = [
        step.command
        for each in (*findings, *(one for each in findings for one in each.consequences))
        if each.rule == "no-consumer"
        for step in text(each).steps
    ]

    assert commands
    assert purge == ("rabbitmqctl purge_queue -p / orders" in commands)


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ((("default-celery", 1, 0),), ["default-celery"]),
        ((("CELERY_7", 2, 0), ("x", 1, 500)), ["CELERY_7"]),
        ((("gdpr.erase", 1, 0),), []),
        ((("q.bills", 1, 0), ("a-celery", 1, 0)), ["a-celery"]),
        ((("default-celery", 0, 0),), []),
        ((("default-celery", 1, 90),), []),
        (tuple((f"celery.{number}.rare", 1, 0) for number in range(6)), []),
    ],
    ids=["waits", "other names", "of another application", "both", "no consumer", "is in use", "many"],
)
def test_consumers_that_wait_where_nothing_comes_may_listen_to_the_wrong_queue(others, named):
    """Both were never used together; one of another application is idle for reasons of its own."""

    def frame(t):
        made = lonely(3, "celery")(t)
        waiting = tuple(
            queue(name, consumers=consumers, stats=stats(publish=number, deliver=number, ack=number))
            if number
            else queue(name, consumers=consumers)
            for name, consumers, number in others
        )
        return {**made, "queues": (*made["queues"], *waiting)}

    (finding,) = [each for each in look(film(frame, until=60)).findings if each.subject.name == "celery"]

    assert named == [each["queue"] for each in finding.facts["idle_elsewhere"]]


@pytest.mark.parametrize(
    ("old", "new", "rate"),
    [("booking.v1", "booking.v2", 6.0), ("orders-v9", "orders-v10", 0.8), ("stock.sync", "stock_sync", 120.0)],
)
def test_a_queue_to_which_the_publisher_moved_without_its_consumers_is_a_warning_soon(old, new, rate):
    """Both queues are bound to one exchange, so the new one looks like a forgotten subscription, too."""

    def frame(t, moved=25.0):
        before, after = int(rate * min(t, moved)), int(rate * max(0.0, t - moved))
        done = stats(publish=before, deliver=before, deliver_get=before, ack=before)
        bound = [
            Binding(vhost="/", source="x", destination=it, destination_type="queue", routing_key=it)
            for it in (old, new)
        ]
        return {
            "queues": (
                queue(old, consumers=3, messages=0, messages_ready=0, messages_unacked=0, stats=done),
                queue(new, consumers=0, messages_ready=after, stats=stats(publish=after)),
            ),
            "bindings": Bindings(listed=tuple(bound)),
            "exchanges": (Exchange(vhost="/", name="x", type="topic"),),
        }

    results = {until: look(film(frame, until=until)) for until in (60, 80, 150)}
    found = {until: [each for each in flat(it.findings) if each.rule == "no-consumer"] for until, it in results.items()}

    assert ["info", "warning", "warning"] == [each.severity.value for (each,) in found.values()]
    assert "the publisher moved to this queue, and the consumers did not" in " ".join(text(found[80][0]).cause.split())
    assert (old, True, None) == tuple(
        found[80][0].facts[key] for key in ("similar_queue", "similar_received", "similar_vhost")
    )


def test_a_connection_whose_channels_come_and_go_is_no_former_consumer():
    """It is between two of them, and has a finding of its own."""

    def frame(t):
        looping_one = looping(t, sent=90, received=92)
        theirs = tuple(replace(each, channels=0 if each.name == PEER else 1) for each in looping_one["connections"])
        return {**looping_one, **lonely()(t), "connections": theirs}

    result = look(film(frame, until=200))

    assert [] == next(each for each in flat(result.findings) if each.rule == "no-consumer").facts["idle_connections"]
