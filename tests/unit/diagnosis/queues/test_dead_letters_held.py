from dataclasses import replace

import pytest

from ackscope.findings import flat
from ackscope.topology import Binding
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, connection, film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import binding, exchange, frame, of, one

RULE = "dead-letters-held"
KEEPS = {
    "x-queue-type": "quorum",
    "x-dead-letter-exchange": "late",
    "x-dead-letter-routing-key": "k",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
    "x-max-length": 300,
}
NO_ROUTE = {"exchanges": (exchange("late", "direct"),), "bindings": (binding("late", "bin", "other"),)}
ROUTE = {"exchanges": (exchange("late", "direct"),), "bindings": (binding("late", "bin", "k"),)}


def keeper(t, name="orders", *, rate=20.0, rejected=0.5, before=100, arguments=None, counted=True, **fields):
    """A queue of 300 messages that keeps what its consumer rejects, and refuses publishes once it is full."""
    settings = KEEPS if arguments is None else arguments
    held = min(300, int(before + rejected * rate * t))
    taken = int((held - before) / rejected) if rejected else int(rate * t)
    counters = stats(publish=int(rate * t), ack=taken - (held - before), deliver=taken, deliver_get=taken)
    totals = {"messages": held, "messages_ready": 0, "messages_dlx": held if counted else None}
    return queue(name, type="quorum", arguments=settings, stats=counters, **{**totals, **fields})


def shown(until, route=None, thresholds=None, **fields):
    """The result after some seconds."""
    window = film(lambda t: frame(keeper(t, **fields), **(NO_ROUTE if route is None else route)), until=until)
    return look(window, thresholds=thresholds)


def test_before_the_limit_it_is_a_warning():
    """How many it keeps, how many more, and why."""
    verdict = shown(15)
    facts = one(RULE, verdict).facts

    assert [("warning", "orders")] == of(RULE, verdict)
    assert (250, 150, "wrong_key", None) == tuple(facts[key] for key in ("held", "grown", "reason", "refused"))


def test_a_queue_that_refuses_its_publishers_for_that_reason_is_critical():
    """It looks empty; the refused messages are neither dropped nor lost."""
    verdict = shown(60)
    finding = one(RULE, verdict)

    assert [("critical", "orders")] == of(RULE, verdict)
    assert (300, 200, "certain") == (finding.facts["held"], finding.facts["refused"], finding.certainty)
    assert ["pub-nacked-overflow"] == [each.rule for each in finding.consequences]
    assert [] == of("dlx-missing", verdict)


def test_two_readings_are_enough():
    """As `ackscope diagnose` has them."""
    window = film(lambda t: frame(keeper(t, before=300), **NO_ROUTE), until=6, every=6)

    assert [("critical", "orders")] == of(RULE, look(window, thresholds=Thresholds.as_if_lasting()))


def test_a_broker_that_does_not_count_them_shows_them_in_its_totals():
    """Messages that are neither ready nor unacknowledged."""
    assert [("critical", "orders")] == of(RULE, shown(60, counted=False))


@pytest.mark.parametrize(
    ("change", "route", "reason"),
    [
        ({}, {}, "no_exchange"),
        ({"x-dead-letter-routing-key": None}, {"exchanges": (exchange("late"),)}, "no_binding"),
        ({"x-dead-letter-exchange": ""}, {}, "no_queue"),
        ({"x-dead-letter-routing-key": None}, ROUTE, "own_keys"),
    ],
    ids=["no exchange", "no binding", "no queue", "keys of the messages"],
)
def test_the_reason_is_what_is_missing(change, route, reason):
    """Each has its own repair."""
    arguments = {key: value for key, value in {**KEEPS, **change}.items() if value is not None}
    finding = one(RULE, shown(60, route=route, arguments=arguments))

    assert (reason, "critical") == (finding.facts["reason"], finding.severity)


def test_where_messages_pass_through_exchanges_the_binding_belongs_at_their_end():
    """A delay chain: a catch-all queue at its first exchange would get the messages of everybody."""
    through = Binding(vhost="/", source="late", destination="delivery", destination_type="exchange", routing_key="#")
    route = {"exchanges": (exchange("late", "topic"), exchange("delivery", "topic"))}
    route["bindings"] = (through, binding("delivery", "bin", "#.sales"))
    finding = one(RULE, shown(130, route=route, arguments={**KEEPS, "x-dead-letter-routing-key": None}))
    commands = " ".join(step.command or "" for step in text(finding).steps)

    assert ("own_keys", ["delivery"]) == (finding.facts["reason"], finding.facts["last_exchanges"])
    assert "/e/delivery/q/QUEUE" in commands
    assert "/e/late/q" not in commands


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"messages_ready": 10, "arguments": {"x-max-length": 10, "x-overflow": "reject-publish"}}, "target_full"),
        ({"state": "down"}, "target_down"),
    ],
    ids=["full", "down"],
)
def test_a_target_that_does_not_take_them_is_named(fields, reason):
    """Their route is right."""
    window = film(lambda t: frame(keeper(t), queue("bin", consumers=0, **fields), **ROUTE), until=60)
    finding = one(RULE, look(window))

    assert (reason, "bin") == (finding.facts["reason"], finding.facts["target"]["name"])
    assert ["orders", "bin"] == [each.name for each in finding.involved.queues]


def test_several_queues_with_one_exchange_are_one_finding():
    """The others hang under the one that is worst."""
    window = film(lambda t: frame(keeper(t), keeper(t, "mails", before=20, rejected=0.1), **NO_ROUTE), until=40)
    verdict = look(window)
    tops = [each for each in verdict.findings if each.severity != "info"]

    assert [("orders", "critical")] == [(each.subject.name, each.severity) for each in tops]
    assert "mails" in [each.subject.name for each in flat(verdict.findings) if each.rule == RULE]


def test_only_a_publisher_whose_nacks_fit_is_named():
    """One with far fewer, and one with far more, are bystanders."""

    def publisher(t, number, rate):
        name = f"10.0.0.{number}:1 -> 10.0.0.1:5672"
        counters = stats(publish=int(rate * t) + 9, confirm=9)
        return channel(f"{name} (1)", confirm=True, consumer_count=0, stats=counters), connection(
            name, client_name=f"app-{number}"
        )

    def made(t):
        pairs = [publisher(t, 1, 20.0), publisher(t, 2, 0.5), publisher(t, 3, 300.0)]
        return {
            **frame(keeper(t, before=300), **NO_ROUTE),
            "channels": tuple(each for each, _ in pairs),
            "connections": tuple(each for _, each in pairs),
        }

    assert ["app-1"] == one(RULE, look(film(made, until=30))).facts["nacked_clients"]


@pytest.mark.parametrize(
    "fields",
    [
        {"before": 0, "rejected": 0.0},
        {"arguments": {**KEEPS, "x-overflow": "drop-head"}, "messages_dlx": 0, "messages": 0},
    ],
    ids=["none kept", "at most once"],
)
def test_other_queues_are_not_reported(fields):
    """Nothing is kept."""
    assert [] == of(RULE, shown(60, **fields))


@pytest.mark.parametrize(("arrive", "rule_says"), [(0.0, "warning"), (2.0, None)], ids=["none", "some"])
def test_a_target_that_gets_none_is_seen_early(arrive, rule_says):
    """While some arrive, it may only be slow."""
    expected = [] if rule_says is None else [(rule_says, "orders")]
    for key in ("k", None):
        arguments = {**KEEPS, "x-dead-letter-routing-key": key}

        def made(t, arguments=arguments):
            counters = stats(publish=int(500 + arrive * t), deliver=500)
            return frame(keeper(t, rate=2.0, arguments=arguments), queue("bin", stats=counters), **ROUTE)

        assert expected == of(RULE, look(film(made, until=25)))


def test_a_target_that_is_a_little_slow_is_not_reported():
    """Their number rises and falls."""

    def slow(t):
        kept = 40 if t % 10 else 10
        here = replace(keeper(t, rejected=0.0), messages=kept, messages_dlx=kept)
        return frame(here, queue("bin"), **ROUTE)

    assert [] == of(RULE, look(film(slow, until=200)))


def delayed(t, *, rate=3.0, consumers=0, ttl=4000, name="reminder.delay", taken=0.0):
    """A delay queue whose messages go on to a work queue that is full; its consumer takes `taken` a second."""
    settings = {**KEEPS, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work", "x-max-length": 100_000}
    settings |= {"x-message-ttl": ttl} if ttl else {}
    held = 50 + int((rate - taken) * t)
    letters = queue(
        name,
        type="quorum",
        consumers=0 if ttl else 1,
        arguments=settings,
        messages=held + 11,
        messages_ready=11,
        messages_dlx=held,
        stats=stats(publish=int(400 + rate * t), **({} if ttl else {"deliver": 400, "ack": 100})),
    )
    full = {"x-max-length": 40, "x-overflow": "reject-publish"}
    acked = int(taken * t)
    counters = stats(ack=acked, deliver=acked, publish=acked) if acked else stats()
    work = queue("work", consumers=consumers, messages_ready=41, arguments=full, stats=counters)
    return frame(letters, work)


@pytest.mark.parametrize(
    ("fields", "until", "severity"),
    [
        ({}, 40, "warning"),
        ({}, 100, "critical"),
        ({"rate": 20.0, "name": "q-1"}, 100, "critical"),
        ({"ttl": None}, 100, "warning"),
        ({"consumers": 1, "taken": 1.0}, 100, "warning"),
    ],
    ids=["early", "late", "other names", "rejected messages", "the target takes some"],
)
def test_a_delay_queue_whose_target_takes_nothing_is_critical(fields, until, severity):
    """What leaves it is regular work."""
    verdict = look(film(lambda t: delayed(t, **fields), until=until))
    finding = one(RULE, verdict)

    assert severity == finding.severity
    if not fields.get("consumers"):
        assert "that queue has no consumer" in text(finding).summary
        assert "Start the consumer of queue 'work'" in text(finding).steps[0].text
