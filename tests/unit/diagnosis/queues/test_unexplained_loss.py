from dataclasses import replace

import pytest

from ackscope.amqp10 import AmqpLink, AmqpSession
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import PEER, channel, connection, consumer, film, look, queue, snapshot, stats, text
from tests.unit.diagnosis.queues.films import binding, exchange, flowing, frame, of, one

RULE = "unexplained-loss"


def shot(until=60, bound=(), **fields):
    """The result for a queue with 8 publishes and 2 acks per second, whose other messages disappear."""
    queue = {"acked": 2.0, "ready": 3, "unacked": 1, **fields}
    parts = {"exchanges": [exchange("dlx")], "bindings": bound}
    return look(film(lambda t: frame(flowing(t, **queue), **parts), until=until))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize(("published", "acked"), [(8.0, 2.0), (0.6, 0.0), (400.0, 100.0)])
def test_messages_that_nothing_explains_are_a_warning(kind, published, acked):
    """Names, types and rates do not matter."""
    result = shot(120, name="a.b1", type=kind, published=published, acked=acked, ready=max(3, int(published)))

    assert [("warning", "a.b1")] == of(RULE, result)


def test_the_finding_says_what_fits_and_what_does_not():
    """The queue has no setting by which messages leave it."""
    facts = one(RULE, shot()).facts

    assert ["message_expiration", "purge"] == facts["fits"]
    assert ["message_ttl", "length_limit", "refused", "rejected"] == facts["excluded"]
    assert 300 <= facts["lost"] <= 360


@pytest.mark.parametrize(
    "fields",
    [
        {"published": 2.0},
        {"rejected": 6.0},
        {"durable": False},
        {"exclusive": True},
        {"arguments": {"x-dead-letter-exchange": "dlx"}, "bound": (binding("dlx", "dead"),)},
        {"type": "stream"},
        {"until": 10},
    ],
    ids=["all acknowledged", "rejected", "transient", "private", "dead-lettered", "stream", "too early"],
)
def test_what_balances_or_goes_elsewhere_is_no_finding(fields):
    """Each differs in one thing."""
    assert [] == of(RULE, shot(**fields))


@pytest.mark.parametrize(
    "arguments", [{"x-message-ttl": 500}, {"x-max-length": 3}], ids=["ttl-expiry-loss", "maxlen-drop-head"]
)
def test_a_story_that_accounts_for_the_same_messages_replaces_it(arguments):
    """The rules about TTL and length limit name the cause."""
    assert [] == of(RULE, shot(arguments=arguments))


def test_consumers_of_another_protocol_make_it_inconclusive():
    """Their deliveries are not counted, so their messages would look lost."""
    parts = {"consumers": (consumer(channel_name=None),)}
    result = look(film(lambda t: {**frame(flowing(t)), **parts}, until=60))

    assert [] == of(RULE, result)
    assert [("other_protocol", True)] == [
        (each.reason, each.permanent) for each in result.inconclusive if each.rule == RULE
    ]


def amqp10(*links, name=PEER):
    """An AMQP 1.0 connection and its session, which consumes from these queues."""
    consuming = tuple(AmqpLink(handle=number, name=each, queue=each) for number, each in enumerate(links))
    sessions = (AmqpSession(connection_name=name, number=0, consuming=consuming),)
    return {"connections": (connection(name, protocol="AMQP 1-0"),), "sessions": sessions}


@pytest.mark.parametrize(
    "parts",
    [
        lambda t: {"connections": (connection(protocol="AMQP 1-0"),)},
        lambda t: amqp10("orders"),
        lambda t: amqp10("orders") if t < 40 else amqp10(name="other"),
        lambda t: amqp10("a" if t % 10 else "b"),
        lambda t: amqp10(),
    ],
    ids=["no session reported", "consumes from it", "consumed from it", "its links come and go", "no link now"],
)
def test_an_amqp_1_0_client_that_may_have_taken_the_messages_makes_it_silent(parts):
    """It may have consumed before, and left."""
    assert [] == of(RULE, look(film(lambda t: {**frame(flowing(t)), **parts(t)}, until=60)))


@pytest.mark.parametrize(
    "parts",
    [
        {"connections": (connection(),)},
        amqp10("other"),
        {"connections": (connection(protocol="MQTT 3-1-1"),)},
        {"connections": (connection(protocol="AMQP 1-0", client_name="ackscope-probe settle"),)},
    ],
    ids=["AMQP 0-9-1", "AMQP 1.0 on another queue", "MQTT", "our own probe, without sessions"],
)
def test_other_clients_of_the_vhost_do_not(parts):
    """An AMQP 1.0 client consumes from the queues of its links, an MQTT client and our probes from their own queues."""
    assert [] != of(RULE, look(film(lambda t: {**frame(flowing(t)), **parts}, until=60)))


def test_the_queue_of_an_mqtt_session_is_not_judged():
    """Its deliveries are not counted."""
    parts = {"connections": (connection(protocol="MQTT 3-1-1"),)}
    name = "mqtt-subscription-sensorqos1"
    assert [] == of(RULE, look(film(lambda t: {**frame(flowing(t, name)), **parts}, until=60)))


def session(t, name, made, left):
    """The queue of an MQTT session that is made at a moment, at 5 messages/s; its client is away from `left` on.

    The broker reports what a queue holds and counts some seconds late.
    """
    if t < made:
        return {"queues": (queue("others"),)}
    if t < made + 6:
        return {"queues": (queue(name, messages=None, messages_ready=None, messages_unacked=None), queue("others"))}
    ready = max(0, int(5 * (t - left)))
    came = stats(publish=int(5 * (t - made)))
    there = queue(name, messages_ready=ready, messages_unacked=0, messages=ready, stats=came, consumers=0)
    return {"queues": (there, queue("others"))}


SESSIONS = ["mqtt-subscription-truck 7qos1", "mqtt-subscription-mqtt-subscription-qos0qos1", "mqtt-subscription-aqos0"]


@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.parametrize(("made", "left"), [(3, 24), (12, 70), (-4, 40), (-4, 60)])
def test_what_the_client_of_a_session_took_before_it_left_is_not_lost(name, made, left):
    """It was there when the session was made; no reading of connections shows it any more."""
    assert [] == of(RULE, look(film(lambda t: session(t, name, made, left), until=120)))


def test_the_same_of_another_queue_is_a_loss():
    """Nobody of another protocol was there."""
    assert [] != of(RULE, look(film(lambda t: session(t, "mqtt-subscriptions", -4, 40), until=120)))


@pytest.mark.parametrize("name", [*SESSIONS, "orders"])
def test_what_leaves_the_session_of_a_client_that_is_away_is_lost(name):
    """Nobody was there in any reading, and the session is older than all of them: its messages expire."""
    result = look(film(lambda t: frame(flowing(t, name, ready=3, consumers=0)), until=120))

    assert [name] == [subject for _, subject in of("ttl-expiry-loss", result)]


def test_publishes_that_a_full_queue_refused_are_not_lost():
    """They were counted as published; pub-nacked-overflow reports them."""
    arguments = {"x-max-length": 3, "x-overflow": "reject-publish"}

    assert [] == of(RULE, shot(arguments=arguments))
    assert [("info", "orders")] == of(RULE, shot(arguments={**arguments, "x-max-length": 3000}))


@pytest.mark.parametrize("backlog", [100, 200])
def test_what_a_story_accounts_for_in_part_is_said(backlog):
    """A purge takes a backlog at second 60; before it, six messages a second expired by themselves."""

    def both(t):
        busy = min(t, 40.0)
        ready = backlog if t <= 60 else 0
        return frame(flowing(busy, "a.b1", published=8.0, acked=2.0, ready=ready))

    finding = one(RULE, look(film(both, until=80)))

    assert backlog == finding.facts["accounted"]
    assert finding.facts["lost"] >= 240 + backlog
    assert f"Other findings about this queue account for {backlog} of them." in text(finding).summary


def test_without_such_a_story_nothing_is_said_of_others():
    """The law alone counts them."""
    finding = one(RULE, shot())

    assert 0 == finding.facts["accounted"]
    assert "Other findings" not in text(finding).summary


def visited(t, *, polls, every, lost, late, held=0):
    """A queue from which a client takes all that is ready at each visit; one visit is not counted in part.

    It ended just before the broker removed the counters of channels that have ended. It still held some messages then,
    whose acknowledgements are not counted either.
    """
    visit = int(t // every)
    taken = 6 * int(every) * visit
    uncounted = lost if visit >= 2 else 0
    counted = max(0, taken - uncounted)
    acked = max(0, counted - (held if visit >= 2 else 0))
    age = t - every * visit
    names = ("get", "deliver_get", "ack") if polls else ("deliver", "deliver_get", "ack")
    shown = (counted, counted, acked) if visit and age >= late else (0, 0, 0) if visit <= 1 else None
    if shown is None:
        before = 6 * int(every) * (visit - 1) - (lost if visit >= 3 else 0)
        shown = (before, before, before - (held if visit >= 3 else 0))
    counters = stats(publish=int(6 * t), **{name: number for name, number in zip(names, shown, strict=True) if number})
    there = 1 if not polls and visit and age < 4 else 0
    return queue("digest", messages_ready=int(6 * t) - taken, consumers=there, stats=counters)


@pytest.mark.parametrize("polls", [True, False], ids=["polls", "consumes"])
@pytest.mark.parametrize("every", [28.0, 43.0, 13.0])
@pytest.mark.parametrize("held", [0, 20])
def test_what_a_client_took_before_it_ended_may_be_counted_nowhere(polls, every, held):
    """No loss is reported in any reading, and the law says why it does not judge."""
    reasons = set()
    for until in range(20, 200, 10):
        result = look(
            film(
                lambda t: frame(visited(t, polls=polls, every=every, lost=6 * int(every), late=3.0, held=held)),
                until=until,
            )
        )
        for rule in (RULE, "queue-purged", "reject-loss"):
            assert [] == of(rule, result)
        reasons |= {each.reason for each in result.inconclusive if each.rule == RULE}

    assert reasons <= {"ended_clients"}
    assert held or reasons


def expiring(t, *, comes=8.0, goes=2.0, name="orders", every=None, backlog=3, consumers=1, held=1, seldom=None):
    """A queue with a slow consumer; the rest leaves at once, or by a purge every so many seconds."""
    published, acked = 100 + int(comes * t), int(goes * t)
    begin = 0.0 if every is None else every * int(t / every)
    gone = (comes - goes) * (t if every is None else begin)
    ready = backlog if every is None else max(0, int((comes - goes) * t - gone))
    if seldom is not None:
        ready = int(t % seldom < 5)
    counters = stats(publish=published, ack=acked, deliver=acked + 1, deliver_get=acked + 1)
    work, send = "10.0.0.7:50001 -> b", "10.0.0.8:50001 -> b"
    return {
        **frame(
            queue(
                name,
                messages_ready=ready,
                messages_unacked=held,
                consumers=consumers,
                stats=counters,
            )
        ),
        "consumers": (consumer(name, channel_name=f"{work} (1)", connection_name=work),) if consumers else (),
        "channels": (
            channel(f"{work} (1)", stats=stats(deliver=acked + 1, ack=acked)),
            channel(f"{send} (1)", consumer_count=0, stats=stats(publish=published)),
        ),
        "connections": (connection(work, client_name="mailer"), connection(send, client_name="shop")),
    }


@pytest.mark.parametrize(
    "fields",
    [{}, {"name": "报表", "comes": 300.0, "goes": 250.0, "backlog": 90}],
    ids=["field", "other name and rates"],
)
def test_messages_that_leave_a_consumed_queue_all_the_time_expire_by_their_own_expiration(fields):
    """The finding names the consumer, and the publisher, which set it."""
    finding = one(RULE, look(film(lambda t: expiring(t, **fields), until=90)))
    expires, shown = finding.facts["expires"], text(finding)

    assert (["mailer"], ["shop"]) == (expires["clients"], expires["publishers"])
    assert fields.get("backlog", 3) / fields.get("comes", 8.0) == pytest.approx(expires["waited_seconds"], rel=0.1)
    assert "before 'mailer' got them, by an expiration that their publisher set" in shown.summary
    assert "'shop' sets the property expiration" in shown.cause
    assert "purges the queue" not in shown.cause
    assert any("Ask the owner of 'shop'" in step.text for step in shown.steps)


@pytest.mark.parametrize(
    ("fields", "severity", "said"),
    [
        ({"held": 0}, "critical", "shorter than the way to a"),
        ({"held": 0, "comes": 40.0, "goes": 35.0, "name": "alerts"}, "critical", "shorter than the way to a"),
        ({"seldom": 45}, "critical", "no time to wait for a consumer that is at work"),
        ({"seldom": 30, "comes": 90.0, "goes": 60.0, "name": "codes"}, "critical", "no time to wait"),
        ({"backlog": 0}, "warning", "is dropped"),
        ({}, "warning", "is dropped"),
        ({"comes": 200.0, "goes": 20.0, "backlog": 400, "name": "positions"}, "warning", "is dropped"),
        ({"comes": 100.0, "goes": 91.0, "held": 0}, "info", "shorter than the way to a"),
    ],
    ids=[
        "the consumer is idle",
        "idle at other rates",
        "no time",
        "no time at other rates",
        "nothing was ever ready",
        "a busy consumer",
        "positions that live for two seconds",
        "few",
    ],
)
def test_how_bad_an_expiration_is_depends_on_the_consumers_and_on_the_time_as_for_a_ttl(fields, severity, said):
    """A slow consumer of messages that live for seconds may be slow on purpose. A time of milliseconds is a mistake."""
    finding = one(RULE, look(film(lambda t: expiring(t, **fields), until=200)))

    assert severity == finding.severity.value
    assert said in text(finding).cause


@pytest.mark.parametrize(("until", "severity"), [(50, "warning"), (140, "critical")])
def test_an_expiration_of_much_is_no_less_than_before_it_is_known_as_one(until, severity):
    """At first it is a loss that nothing explains; after a minute it goes on."""
    assert severity == one(RULE, look(film(lambda t: expiring(t, held=0), until=until))).severity.value


@pytest.mark.parametrize("fields", [{"every": 40.0}, {"every": 70.0}], ids=["purges now and then", "one purge"])
def test_a_purge_is_no_expiration(fields):
    """It takes all at once."""
    found = look(film(lambda t: expiring(t, **fields), until=90)).findings

    assert not [each for each in found if each.rule == RULE and each.facts["expires"]]


def test_a_consumer_that_restarts_may_purge_its_queue_at_each_start():
    """Its messages may expire as well, so both are said."""

    def frame_at(t):
        made = expiring(t)
        (one_of,) = made["consumers"]
        return {**made, "consumers": (replace(one_of, tag=f"ctag{int(t // 15)}"),)}

    finding = one(RULE, look(film(frame_at, until=90)))

    assert (None, ["mailer"]) == (finding.facts["expires"], finding.facts["clients"])
    assert "purges its queue at each start" in text(finding).cause
    assert "code of 'mailer'" in text(finding).steps[0].text


@pytest.mark.parametrize("arguments", [{"x-message-ttl": 500_000}, {"x-max-length": 100_000}], ids=["TTL", "limit"])
def test_settings_that_may_be_the_reason_are_named_first(arguments):
    """The messages may have an expiration all the same."""
    found = shot(arguments=arguments).findings

    assert not [each for each in found if each.rule == RULE and each.facts["expires"]]


@pytest.mark.parametrize(
    "steps", [((0, 0), (68, 0), (148, 14), (158, 0)), ((0, 0), (40, 2), (90, 9), (95, 0), (95, 0))]
)
def test_a_brief_loss_is_counted_at_once(steps):
    """Messages that go while more and more are left are no backlog that expires: that would hide the rest of them."""
    window, before = film(lambda _: {"queues": ()}, until=0), None
    for number, (published, ready) in enumerate(steps, start=1):
        there = queue("brief", consumers=0, messages_ready=ready, stats=stats(publish=published or None))
        window = window.add(snapshot(5.0 * number, queues=(there,)))
        before = diagnose(window, (), window.latest.taken, Thresholds(), before)

    assert [("warning", "brief")] == of(RULE, before)
    assert steps[-1][0] == one(RULE, before).facts["lost"]
    assert 0 == one(RULE, before).facts["accounted"]


@pytest.mark.parametrize("limit", [None, 100])
@pytest.mark.parametrize("number", [120, 900])
@pytest.mark.parametrize("every", [5.0, 8.0, 11.0])
def test_a_burst_that_came_and_was_purged_between_two_readings_is_said(limit, number, every):
    """No reading shows it in the queue; only the counter of its publishes does, from one reading on."""

    def burst(t):
        arguments = {} if limit is None else {"x-max-length": limit}
        counters = stats(publish=number) if t > 3 * every else stats()
        return frame(queue("a.b1", messages_ready=0, consumers=0, arguments=arguments, stats=counters))

    results = [look(film(burst, until=int(every * polls), every=every)) for polls in range(2, 12)]

    assert [("warning" if limit is None else "info", "a.b1")] == of(RULE, results[-1])
    assert number == one(RULE, results[-1]).facts["lost"]
    assert [] == of(RULE, results[1])
