from dataclasses import replace

import pytest

from ackscope.findings import Impact, QueueRef, Severity
from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, connection, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import findings

RULE = "pub-nacked-overflow"
PUBLISHER = "10.0.0.9:50002 -> 10.0.0.1:5672"
LIMITED = {"x-max-length": 10, "x-overflow": "reject-publish"}


def found(verdict):
    """Rule, severity and queue of each finding of this rule."""
    return [(each.rule, each.severity.value, each.subject.name) for each in findings(verdict, RULE)]


def only(verdict):
    """The one finding of this rule."""
    (finding,) = findings(verdict, RULE)
    return finding


def full(t, *, name="orders", ready=10, rate=8.0, acked=0.0, arguments=None, **fields):
    """A queue at its limit of 10 messages; messages published and acknowledged a second."""
    counters = stats(publish=int(10 + rate * t), ack=int(acked * t))
    return queue(name, messages_ready=ready, messages=ready, arguments=arguments or LIMITED, stats=counters, **fields)


def publisher(t, *, rate=8.0, confirmed=0.0, confirm=True, unconfirmed=1, **fields):
    """A channel; messages published and confirmed a second."""
    counters = stats(publish=int(10 + rate * t), **({"confirm": int(10 + confirmed * t)} if confirm else {}))
    return channel(
        f"{PUBLISHER} (1)",
        confirm=confirm,
        consumer_count=0,
        messages_unconfirmed=unconfirmed,
        stats=counters,
        **fields,
    )


def picture(t, *, to=None, by=None):
    """The full queue, its publisher, and the application behind it."""
    return {
        "queues": (full(t, **(to or {})),),
        "channels": (publisher(t, **(by or {})),),
        "connections": (connection(PUBLISHER, client_name="shop"),),
    }


def test_a_full_queue_that_nacks_is_critical_and_names_the_publisher():
    """How full the queue is, how many messages it refused, and who published them."""
    finding = only(look(film(picture, until=15)))

    assert ("pub-nacked-overflow", "critical", "orders") == (finding.rule, finding.severity, finding.subject.name)
    expected = {"ready": 10, "limit_messages": 10, "refused": 80, "interval_seconds": 10.0, "nacked_clients": ["shop"]}
    assert expected == {key: finding.facts[key] for key in expected}
    assert (QueueRef("/", "orders"),) == finding.involved.queues
    assert (("shop",), (PUBLISHER,)) == (finding.involved.clients, finding.involved.connections)
    assert ["ready", "published", "refused", "nacked"] == [item.key for item in finding.evidence]


@pytest.mark.parametrize(("rate", "acked"), [(8.0, 6.5), (2.4, 1.4), (300.0, 200.0)])
def test_refusals_that_slow_a_publisher_with_confirms_are_a_warning(rate, acked):
    """The consumers acknowledge more than is refused, and the client knows of each refusal: backpressure."""
    frame = lambda t: picture(t, to={"rate": rate, "acked": acked}, by={"rate": rate, "confirmed": acked})  # noqa: E731
    finding = only(look(film(frame, until=25)))
    said = text(finding)

    assert ("warning", ["shop"]) == (finding.severity, finding.facts["nacked_clients"])
    assert "refused" in said.summary
    assert "publishes again" in said.cause
    assert not any("purge_queue" in (step.command or "") for step in said.steps)


@pytest.mark.parametrize(
    ("to", "by"),
    [
        ({"acked": 3.5}, {"confirmed": 3.5}),
        ({"acked": 0.0}, {}),
        ({"acked": 6.5}, {"confirm": False}),
    ],
    ids=["most is refused", "nothing is acknowledged", "no confirms"],
)
def test_other_refusals_stay_critical(to, by):
    """Messages are lost, or hardly any gets through."""
    assert "critical" == only(look(film(lambda t: picture(t, to=to, by=by), until=15))).severity


def test_two_readings_are_enough():
    """One look of eight seconds finds it."""
    window = film(picture, until=8, every=8)

    assert [("pub-nacked-overflow", "critical", "orders")] == found(look(window, thresholds=Thresholds.as_if_lasting()))


def test_publishers_without_confirms_lose_messages_silently():
    """No channel shows a nack, but the queue stores nothing of what is published to it."""
    window = film(lambda t: picture(t, by={"confirm": False}), until=15)

    finding = only(look(window))

    assert "critical" == finding.severity
    assert ([], [f"{PUBLISHER} (1)"]) == (
        finding.facts["nacked_clients"],
        finding.facts["channels_without_confirms"],
    )


def test_a_full_queue_to_which_nobody_publishes_is_information():
    """Nothing is refused, because nothing is published."""
    window = film(lambda t: picture(t, to={"rate": 0.0}, by={"rate": 0.0}), until=60)

    assert [("pub-nacked-overflow", "info", "orders")] == found(look(window))


def test_a_limit_in_bytes_counts_like_one_in_messages():
    """Full is where the next message of average size does not fit."""
    limits = {"x-max-length-bytes": 1000, "x-overflow": "reject-publish"}
    window = film(lambda t: picture(t, to={"arguments": limits, "message_bytes_ready": 950}), until=15)

    facts = only(look(window)).facts
    assert (950, 1000, None) == (facts["ready_bytes"], facts["limit_bytes"], facts["limit_messages"])


def test_a_limit_by_policy_can_be_raised():
    """The command is exact: pattern, definition, and the policy that it would replace."""
    policy = {"max-length": 10, "overflow": "reject-publish"}
    limited = {"arguments": {"x-queue-type": "classic"}, "effective_policy": policy, "policy": "small"}
    window = film(lambda t: picture(t, to=limited), until=15)

    finding = only(look(window))
    (step,) = [each for each in text(finding).steps if "set_policy" in (each.command or "")]

    assert "small" == finding.facts["queue"]["policy"]
    definition = '{"max-length": 20, "overflow": "reject-publish"}'
    assert f"set_policy -p / queue-orders '^orders$' '{definition}' --apply-to queues" in step.command
    assert "policy 'small'" in step.text


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"x-max-length": 10}},
        {"arguments": {"x-max-length": 10, "x-overflow": "drop-head"}},
        {"arguments": {"x-overflow": "reject-publish"}},
        {"ready": 3},
    ],
    ids=["drops the oldest by default", "drops the oldest", "no limit", "not full"],
)
def test_other_queues_are_not_reported(change):
    """Only a queue that refuses publishes when it is full, and is full."""
    assert [] == found(look(film(lambda t: picture(t, to=change), until=60)))


def test_a_queue_that_drains_as_fast_as_it_fills_is_not_reported():
    """It reaches its limit, but every message was stored or delivered."""

    def frame(t):
        ready = 10 if t % 10 else 9
        return picture(t, to={"ready": ready, "acked": 8.0}, by={"confirmed": 8.0})

    verdicts = [found(look(film(frame, until=until))) for until in range(5, 60, 5)]

    assert "critical" not in [severity for verdict in verdicts for _, severity, _ in verdict]


def test_a_few_refusals_of_a_busy_queue_are_noise():
    """Published and acknowledged are current, the number of messages is seconds old."""
    busy = film(lambda t: picture(t, to={"rate": 100.0, "acked": 98.0}, by={"rate": 0.0}), until=15)

    finding = only(look(busy))

    assert "info" == finding.severity
    assert 0 == finding.facts["refused"]


def test_messages_that_expire_do_not_count_as_refused():
    """With a message TTL the balance of the queue proves nothing, so the channels decide."""
    ttl = {**LIMITED, "x-message-ttl": 1000}
    confirmed = film(lambda t: picture(t, to={"arguments": ttl}, by={"confirmed": 8.0}), until=15)
    nacked = film(lambda t: picture(t, to={"arguments": ttl}), until=15)

    assert [("pub-nacked-overflow", "info", "orders")] == found(look(confirmed))
    assert [("pub-nacked-overflow", "critical", "orders")] == found(look(nacked))


def test_a_full_queue_that_may_refuse_unnoticed_is_a_warning():
    """With a message TTL it is not known whether it refuses anything, and its publishers use no confirms."""
    ttl = {**LIMITED, "x-message-ttl": 1000}
    finding = only(look(film(lambda t: picture(t, to={"arguments": ttl}, by={"confirm": False}), until=15)))

    assert ("warning", None) == (finding.severity, finding.facts["refused"])
    assert [f"{PUBLISHER} (1)"] == finding.facts["channels_without_confirms"]


def test_messages_in_flight_do_not_count_as_nacked():
    """Messages that are not yet confirmed are unconfirmed, however many."""
    ttl = {**LIMITED, "x-message-ttl": 1000}
    flight = {"rate": 8.0, "confirmed": 0.0, "unconfirmed": 500}
    window = film(lambda t: picture(t, to={"arguments": ttl}, by=flight), until=15)

    assert [("pub-nacked-overflow", "info", "orders")] == found(look(window))


def test_a_few_in_flight_are_not_nacks():
    """The number of unconfirmed messages is seconds old, so one or two may be missing."""

    def frame(t):
        late = picture(t, to={"rate": 8.0}, by={"confirmed": 8.0, "unconfirmed": 0})
        ahead = publisher(t, confirmed=7.8, unconfirmed=0)
        return {**late, "channels": (ahead,)}

    assert [] == only(look(film(frame, until=15))).facts["nacked_clients"]


def test_a_channel_that_was_opened_meanwhile_counts_from_zero():
    """A publisher that opens a channel for each batch is found nevertheless."""

    def frame(t):
        late = picture(t)
        opened = {"stats": stats(publish=int(8 * (t - 5)), confirm=0)}
        return {**late, "channels": (replace(publisher(t), **opened),) if t >= 10 else ()}

    assert ["shop"] == only(look(film(frame, until=15))).facts["nacked_clients"]


def test_channels_of_another_vhost_are_no_suspects():
    """They cannot publish to this queue."""
    window = film(lambda t: picture(t, by={"vhost": "other"}), until=15)

    assert [] == only(look(window)).facts["nacked_clients"]


def test_without_channels_the_publishers_are_inconclusive():
    """The queue is reported, its publishers are not known."""

    def frame(t):
        return {**picture(t), "channels": Part(error="timed out")}

    verdict = look(film(frame, until=15))

    assert [("pub-nacked-overflow", "critical", "orders")] == found(verdict)
    assert [("channels_not_read", {"queues": ["orders"]})] == [
        (each.reason, each.facts) for each in verdict.inconclusive if each.rule == "pub-nacked-overflow"
    ]


@pytest.mark.parametrize(
    ("change", "consumers", "ack_rate"),
    [({"consumers": 0}, 0, 0.0), ({"consumers": 2}, 2, 0.0), ({"consumers": 2, "acked": 0.5}, 2, 0.5)],
    ids=["no consumer", "stuck", "slow"],
)
def test_it_shows_why_the_queue_is_full(change, consumers, ack_rate):
    """No consumer, consumers that acknowledge nothing, slow consumers."""
    facts = only(look(film(lambda t: picture(t, to=change), until=20))).facts

    assert (consumers, ack_rate) == (facts["consumers"], facts["ack_rate"])


def draining(t, name="orders"):
    """A queue that was full and now has three quarters of its limit."""
    ready = 10 if t < 20 else 7.5
    limits = {"x-max-length": 100, "x-overflow": "reject-publish"}
    counters = stats(publish=int(100 + 8 * t), ack=10)
    full = int(10 * ready)
    return queue(name, messages_ready=full, messages=full, arguments=limits, stats=counters)


def test_relief_may_differ_by_queue():
    """A quorum queue resumes below 80 % of its limit; settings may change that for one queue."""
    thresholds = Thresholds.model_validate(
        {"overrides": [{"queues": "^batch$", "values": {"publishers": {"overflow_relief": 0.5}}}]}
    )

    def frame(t):
        return {"queues": (draining(t), draining(t, "batch"))}

    assert ["batch"] == [name for _, _, name in found(look(film(frame, until=25), thresholds=thresholds))]


def test_only_publishers_whose_nacks_fit_are_named():
    """Two full queues refuse at different rates; each finding names its own publisher, and none a bystander."""

    def app(t, number, rate, confirmed=0.0):
        name = f"10.0.1.{number}:1 -> 10.0.0.1:5672"
        counters = stats(publish=int(10 + rate * t), confirm=int(10 + confirmed * t))
        return channel(f"{name} (1)", confirm=True, consumer_count=0, stats=counters), connection(
            name, client_name=f"app-{number}"
        )

    def frame(t):
        apps = [app(t, 1, 8.0), app(t, 2, 200.0), app(t, 3, 300.0, confirmed=300.0)]
        return {
            "queues": (full(t), full(t, rate=200.0, name="mails")),
            "channels": tuple(each for each, _ in apps),
            "connections": tuple(each for _, each in apps),
        }

    verdict = look(film(frame, until=20))

    named = {each.subject.name: each.facts["nacked_clients"] for each in findings(verdict, RULE)}
    assert {"orders": ["app-1"], "mails": ["app-2"]} == named


def test_a_publisher_with_many_messages_in_flight_is_not_named():
    """Its unsettled publishes rise and fall."""

    def frame(t):
        late = picture(t)
        ahead = 400 if (t // 5) % 2 else 20
        name = "10.0.0.5:1 -> 10.0.0.1:5672"
        busy = channel(
            f"{name} (1)",
            confirm=True,
            messages_unconfirmed=20,
            stats=stats(publish=int(1000 + 100 * t) + ahead, confirm=int(1000 + 100 * t)),
        )
        return {**late, "channels": (*late["channels"], busy)}

    assert ["shop"] == only(look(film(frame, until=15))).facts["nacked_clients"]


def test_a_fan_out_warns_of_duplicates():
    """The other queue stored what this one refused, so a second publish would be there twice."""

    def frame(t):
        other = queue("audit", stats=stats(publish=int(8 * t)))
        there = Exchange(vhost="/", name="all", type="fanout", stats=stats(publish_in=int(8 * t)))
        ends = (
            Binding(vhost="/", source="all", destination=name, destination_type="queue") for name in ("orders", "audit")
        )
        late = picture(t)
        return {
            **late,
            "queues": (*late["queues"], other),
            "exchanges": (there,),
            "bindings": Bindings(listed=tuple(ends)),
        }

    finding = only(look(film(frame, until=15)))

    assert (["all"], ["audit"]) == (finding.facts["fan_out_exchanges"], finding.facts["also_stored_by"])
    assert not any("publish again" in step.text for step in text(finding).steps)


def test_refused_messages_that_are_dead_lettered_are_not_lost():
    """A classic queue with reject-publish-dlx sends them to its dead-letter exchange."""
    letters = {**LIMITED, "x-overflow": "reject-publish-dlx"}
    routed = {**letters, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "refused"}

    def frame(t, arguments):
        late = picture(t, to={"arguments": arguments})
        return {**late, "queues": (*late["queues"], queue("refused"))}

    kept = only(look(film(lambda t: frame(t, routed), until=15)))
    nowhere = only(look(film(lambda t: frame(t, letters), until=15)))

    assert (["refused"], []) == (kept.facts["dead_lettered_to"], nowhere.facts["dead_lettered_to"])
    assert (Severity.WARNING, Impact.SLOWDOWN) == (kept.severity, kept.impact)
    assert (Severity.CRITICAL, Impact.LOSS) == (nowhere.severity, nowhere.impact)
    assert "refused" in text(kept).summary


def test_a_quorum_queue_does_not_support_reject_publish_dlx():
    """It drops its oldest messages instead."""
    letters = {**LIMITED, "x-overflow": "reject-publish-dlx"}

    assert [] == found(look(film(lambda t: picture(t, to={"arguments": letters, "type": "quorum"}), until=15)))


def test_what_consumers_reject_is_not_refused():
    """Rejected without requeue: it left the queue."""

    def frame(t):
        taken = int(8 * t)
        counters = stats(publish=int(10 + 8 * t), deliver=taken, deliver_get=taken)
        return {"queues": (queue(messages_ready=10, messages=10, arguments=LIMITED, stats=counters),)}

    assert 0 == only(look(film(frame, until=15))).facts["refused"]


def test_a_full_queue_and_its_missing_consumer_are_one_finding():
    """The refusal is the headline, the missing consumer hangs under it."""
    finding = only(look(film(lambda t: picture(t, to={"consumers": 0}), until=60)))

    assert "critical" == finding.severity
    assert ["no-consumer"] == [each.rule for each in finding.consequences]


def nearly(t, *, level=28, limit=30, rate=12.0, taken=2.0, kind="quorum", transactional=False, purged=None):
    """A queue whose consumer takes a message now and then: each reading has room for a few, and most are refused."""
    filling = int(min(rate * t, level))
    done = int(taken * t)
    left = 0 if purged is not None and t >= purged else filling
    counters = stats(publish=int(rate * t), deliver=done, deliver_get=done, ack=done)
    refuses = {"x-max-length": limit, "x-overflow": "reject-publish"}
    there = queue("ledger", type=kind, messages_ready=left, arguments=refuses, stats=counters)
    by = {"rate": rate, "confirm": False, "unconfirmed": 0, "transactional": transactional}
    return {
        "queues": (there,),
        "channels": (publisher(t, **by),),
        "connections": (connection(PUBLISHER, client_name="bank"),),
    }


def unread(t):
    """The same queue, of which the broker reports nothing in the first seconds."""
    made = nearly(t)
    if t >= 8:
        return made
    return {
        **made,
        "queues": (queue("ledger", messages=None, messages_ready=None, arguments=made["queues"][0].arguments),),
    }


@pytest.mark.parametrize("frame", [nearly, unread])
def test_a_queue_that_is_full_between_its_readings_refuses(frame):
    """The balance since it is near its limit shows it."""
    finding = only(look(film(frame, until=90)))

    assert ("critical", "ledger") == (finding.severity, finding.subject.name)
    assert (28, 30) == (finding.facts["ready"], finding.facts["limit_messages"])
    assert 80 <= finding.facts["refused"] <= 130


@pytest.mark.parametrize(("kind", "named"), [("quorum", ["bank"]), ("classic", [])])
def test_a_transaction_does_not_show_the_refusal_of_a_quorum_queue(kind, named):
    """That of a classic queue ends it with an error."""
    finding = only(look(film(lambda t: nearly(t, kind=kind, transactional=True), until=90)))

    assert (named, bool(named)) == (finding.facts["clients_without_confirms"], finding.facts["transactions"])


@pytest.mark.parametrize(
    "fields",
    [{"rate": 2.0}, {"level": 20}, {"purged": 85}, {"rate": 2.3}],
    ids=["all is taken", "half full", "purged", "fills"],
)
def test_a_queue_below_its_limit_that_balances_refuses_nothing(fields):
    """Near the limit is not at the limit."""
    assert [] == found(look(film(lambda t: nearly(t, **fields), until=90)))


SOURCE = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}


@pytest.mark.parametrize(
    ("kind", "source", "word"),
    [
        ("classic", {}, "the broker drops it, and no counter shows it"),
        ("quorum", {}, "stores dead letters also beyond its limit"),
        (
            "classic",
            {"type": "quorum", "effective_policy": {"dead-letter-strategy": "at-least-once"}},
            "stay in the queue that they come from",
        ),
    ],
)
def test_dead_letters_that_a_full_queue_gets_are_not_counted(kind, source, word):
    """That no refusal was seen says something of publishes only."""

    def frame(t, *, feeds=True):
        to = {"rate": 0.0, "type": kind, "arguments": LIMITED}
        made = picture(t, to=to, by={"rate": 0.0})
        overflow = {"x-overflow": "reject-publish"} if source else {}
        work = queue("work", **{**source, "arguments": {**SOURCE, **overflow} if feeds else {}})
        return {**made, "queues": (*made["queues"], work)}

    fed, alone = only(look(film(frame, until=60))), only(look(film(lambda t: frame(t, feeds=False), until=60)))

    assert ("info", ["work"], []) == (
        fed.severity,
        fed.facts["dead_letter_sources"],
        alone.facts["dead_letter_sources"],
    )
    assert "no refusal of a publish was seen" in text(fed).summary
    assert "dead letters of 'work'" in text(fed).summary
    assert word in text(fed).cause
    assert "no refusal was seen" in text(alone).summary
    assert "dead letter" not in text(alone).cause


def test_dead_letters_make_the_number_of_refused_publishes_a_minimum():
    """Those that are stored take the room of publishes, and no counter has them."""

    def frame(t):
        made = picture(t)
        return {**made, "queues": (*made["queues"], queue("work", arguments=SOURCE))}

    assert "refused 80 messages or more in 10 s" in text(only(look(film(frame, until=15)))).summary
    assert "refused 80 messages in 10 s" in text(only(look(film(picture, until=15)))).summary
