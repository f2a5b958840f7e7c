from dataclasses import replace

import pytest

from ackscope.findings import Certainty
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, full_text, look, queue, stats, text
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "maxlen-drop-head"
LIMITED = {"x-max-length": 10}


def dropping(t, **fields):
    """A queue at its limit of 10: 8 messages per second are published, one every 2 s is acknowledged."""
    return flowing(t, **{"acked": 0.5, "ready": 10, "unacked": 1, "arguments": LIMITED, **fields})


def shot(until, **fields):
    """The result for that queue after this many seconds."""
    return look(film(lambda t: frame(dropping(t, **fields)), until=until))


def test_it_is_information_first_and_critical_after_a_minute():
    """A burst ends sooner."""
    assert [] == of(RULE, shot(5))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("info", "orders")] == of(RULE, shot(55))
    assert [("critical", "orders")] == of(RULE, shot(75))


def test_a_limit_of_one_keeps_the_newest_on_purpose():
    """The last value of a sensor, read now and then: the others are meant to be dropped."""
    finding = one(RULE, shot(200, arguments={"x-max-length": 1}, ready=1))

    assert "info" == finding.severity
    assert "keeps only the newest on purpose" in text(finding).summary


def test_counters_tell_for_how_long_it_has_lost_messages():
    """Twenty-five seconds are seen, and what it has lost before is several minutes' worth at the present rate."""
    windows = [film(lambda t, start=start: frame(dropping(t + start)), until=25) for start in (0, 600)]

    assert [["info"], ["critical"]] == [[severity for severity, _ in of(RULE, look(window))] for window in windows]


def test_the_finding_says_how_many_are_lost_and_how_to_stop_it():
    """With the exact command."""
    finding = one(RULE, shot(75))
    commands = [step.command or "" for step in text(finding).steps]

    assert (10, 10, None) == tuple(finding.facts[key] for key in ("ready", "max_length", "overflow"))
    assert 500 <= finding.facts["lost"] <= 563
    assert """'{"max-length": 10, "overflow": "reject-publish"}'""" in commands[1]


def test_the_command_includes_the_settings_of_the_policy_in_force():
    """A queue has one policy."""
    limited = {"arguments": {}, "policy": "short", "effective_policy": {"max-length": 10, "expires": 60_000}}
    steps = text(one(RULE, shot(75, **limited))).steps

    assert """'{"expires": 60000, "max-length": 10, "overflow": "reject-publish"}'""" in (steps[1].command or "")
    assert "replaces policy 'short'" in steps[1].text


def test_an_overflow_by_argument_cannot_be_changed_by_a_policy():
    """The argument is in force."""
    limited = {**LIMITED, "x-overflow": "drop-head"}
    report = text(one(RULE, shot(75, arguments=limited)))

    assert not any("reject-publish" in (step.command or "") for step in report.steps)


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    window = film(lambda t: frame(dropping(t)), until=6, every=6)

    assert [("critical", "orders")] == of(RULE, look(window, thresholds=Thresholds.as_if_lasting()))


def test_the_interval_in_which_it_became_full_counts():
    """It lost messages in it."""
    window = film(lambda t: frame(dropping(t, ready=min(10, int(4 * t)), unacked=0)), until=30)

    assert 30.0 == one(RULE, look(window)).facts["over_seconds"]


def test_a_limit_in_bytes_counts_like_one_in_messages():
    """And so does one by policy."""
    limited = {"arguments": {}, "effective_policy": {"max-length-bytes": 1000}, "message_bytes_ready": 980}

    assert (980, 1000) == tuple(
        one(RULE, shot(75, **limited)).facts[key] for key in ("ready_bytes", "max_length_bytes")
    )


def test_an_explicit_drop_head_is_at_most_a_warning():
    """Somebody chose it."""
    limited = {**LIMITED, "x-overflow": "drop-head"}

    assert [("warning", "orders")] == of(RULE, shot(120, arguments=limited))


def test_without_consumers_it_may_hold_the_newest_few_on_purpose():
    """A ring buffer is information, not an alarm."""
    assert [("info", "orders")] == of(RULE, shot(300, consumers=0, acked=0.0, unacked=0))


def abandoned(t, *, share, limit=10, rate=8.0, **fields):
    """A full queue whose consumer left after 20 s, and took this share of what came until then."""
    arrived, before = int(4000 + rate * t), int(4000 + rate * min(t, 20.0))
    taken = int(share * before)
    counters = stats(publish=arrived, ack=taken, deliver=taken, deliver_get=taken)
    here = queue(
        "orders", messages_ready=limit, consumers=int(t < 20), stats=counters, arguments={"x-max-length": limit}
    )
    return {"queues": (replace(here, **fields),)}


@pytest.mark.parametrize(
    ("share", "limit", "severity"),
    [(0.99, 300, "critical"), (0.6, 10, "critical"), (0.1, 20, "critical"), (0.01, 50, "info")],
)
def test_a_queue_whose_consumer_took_its_messages_is_no_ring_buffer(share, limit, severity):
    """Nobody processes what it drops since the consumer left; somebody who looked at a ring buffer took a few."""
    verdict = look(film(lambda t: abandoned(t, share=share, limit=limit), until=120))
    finding = one(RULE, verdict)

    assert severity == finding.severity.value
    assert ("on purpose" in text(finding).summary) == (severity == "info")


@pytest.mark.parametrize("waits", [True, False])
def test_consumers_that_wait_in_another_vhost_show_that_its_messages_are_work(waits):
    """The publisher or its consumers use the wrong virtual host; the loss is in the summary of the cause."""

    def wrong_vhost(t):
        counters = stats(publish=int(4000 + 20 * t))
        full = queue("ingest", vhost="staging", messages_ready=300, stats=counters, arguments={"x-max-length": 300})
        other = queue("ingest", vhost="prod", messages_ready=0, consumers=1, stats=stats())
        mine = consumer("ingest", vhost="prod", channel_name="c (1)", connection_name="c")
        return {
            "queues": (replace(full, consumers=0), *((other,) if waits else ())),
            "consumers": (mine,) if waits else (),
            "channels": (channel(name="c (1)", connection_name="c", vhost="prod"),) if waits else (),
            "connections": (connection(name="c", vhost="prod"),) if waits else (),
        }

    verdict = look(film(wrong_vhost, until=100))
    cause = next(each for each in verdict.findings if each.subject.name == "ingest")

    assert ("critical" if waits else "info") == cause.severity.value
    assert waits == ("lost in" in text(cause).summary)


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {**LIMITED, "x-overflow": "reject-publish"}},
        {"arguments": {}},
        {"ready": 3},
        {"acked": 8.0},
        {"published": 0.0},
        {"type": "stream"},
    ],
    ids=["refuses", "no limit", "not full", "keeps up", "nothing published", "stream"],
)
def test_other_queues_are_not_reported(fields):
    """Each differs in one thing only."""
    assert [] == of(RULE, shot(120, **fields))


def test_messages_that_are_dead_lettered_are_not_lost():
    """It is suppressed, with the reason."""
    verdict = shot(120, arguments={**LIMITED, "x-dead-letter-exchange": "kept"})

    assert [] == of(RULE, verdict)
    assert [("dead_lettered", "kept")] == [
        (each.reason, each.facts["exchange"]) for each in verdict.suppressed if each.rule == RULE
    ]


def test_a_length_that_is_refreshed_late_does_not_hide_the_loss():
    """The counters of a new queue come before its length: that looks like a loss from a queue that is not full."""

    def late(t):
        made = dropping(t)
        return frame(made if t >= 20 else replace(made, messages=0, messages_ready=0, messages_unacked=0))

    assert [("critical", "orders")] == of(RULE, look(film(late, until=95)))


def full_once(t, *, until=60.0, limit=50, rate=8.0, emptied="purged", name="orders", **fields):
    """A queue that drops at its limit until it is purged, or until a consumer takes all that is left."""
    published = int(100 + limit + rate * min(t, until))
    taken = limit if emptied == "consumed" and t > until else 0
    ready = limit if t <= until else 0
    counters = stats(publish=published, **({"deliver_no_ack": taken} if taken else {}))
    own = {"messages_ready": ready, "consumers": 0, "stats": counters, "arguments": {"x-max-length": limit}, **fields}
    return queue(name, **own)


@pytest.mark.parametrize(("name", "limit", "rate"), [("orders", 50, 8.0), ("x", 500, 40.0), ("y", 20, 2.0)])
def test_drops_and_a_purge_are_counted_apart(name, limit, rate):
    """What was dropped before, and what was ready when somebody purged it."""
    result = look(film(lambda t: frame(full_once(t, name=name, limit=limit, rate=rate)), until=100))

    assert round(rate * 60) == pytest.approx(one(RULE, result).facts["lost"], rel=0.02, abs=1)
    assert limit == one("queue-purged", result).facts["purged"]
    assert one(RULE, result).facts["ended"]
    assert [] == of("unexplained-loss", result)


def test_drops_are_reported_after_consumers_have_caught_up():
    """The queue is not full any more, and the messages are lost all the same."""
    result = look(film(lambda t: frame(full_once(t, emptied="consumed")), until=100))

    assert 480 == pytest.approx(one(RULE, result).facts["lost"], rel=0.02)
    assert [] == of("queue-purged", result)
    assert "was full and dropped" in text(one(RULE, result)).summary


def test_a_full_queue_that_is_drained_and_dropped_nothing_is_healthy():
    """It was full, and everything was consumed."""
    result = look(film(lambda t: frame(full_once(t, rate=0.0, emptied="consumed")), until=100))

    assert [] == of(RULE, result)


def test_a_lower_limit_is_no_purge():
    """The broker drops the rest at once."""

    def lowered(t):
        of_it = {"arguments": {"x-max-length": 50 if t <= 60 else 5}, "messages_ready": 50 if t <= 60 else 5}
        return frame(full_once(t, **of_it))

    assert [] == of("queue-purged", look(film(lowered, until=100)))


@pytest.mark.parametrize(("consumers", "severity"), [(1, "warning"), (0, "info")])
def test_what_was_dropped_is_urgent_if_it_had_a_consumer_then(consumers, severity):
    """Without one it may have held the newest few on purpose."""
    result = look(film(lambda t: frame(full_once(t, emptied="consumed", consumers=consumers)), until=100))

    assert [(severity, "orders")] == of(RULE, result)


def test_brief_drops_are_counted_while_consumers_reject():
    """Drops of 15 s, in a queue whose consumer rejects half of what is published: the whole balance proves both."""

    def rejecting(t):
        published = int(20 * max(0.0, min(t - 21, 15.0)))
        got = published // 2
        counters = stats(**({"publish": published, "get": got} if published else {}))
        ready = min(50, published - got)
        return frame(queue(messages_ready=ready, consumers=0, stats=counters, arguments={"x-max-length": 50}))

    result = look(film(rejecting, until=60))

    assert (150, 100) == (one("reject-loss", result).facts["lost"], one(RULE, result).facts["lost"])
    assert [] == of("unexplained-loss", result)


@pytest.mark.parametrize("length_late", [0.0, 1.3, 2.7, 4.1])
@pytest.mark.parametrize("counters_late", [0.2, 1.9, 3.3, 4.8])
def test_a_new_queue_that_drops_and_is_purged_is_counted_exactly(length_late, counters_late):
    """162 messages within 8 s, 112 of them dropped, and a purge; whatever the delays of the statistics are."""

    def new(t):
        def published(at):
            return int(min(162, 20 * max(0.0, at - 21)))

        def refreshed(late):
            return int((t - late) // 5) * 5 + late

        at = refreshed(length_late)
        ready = min(50, published(at)) if at < 29.4 else 0
        counted = published(refreshed(counters_late))
        counters = stats(**({"publish": counted} if counted else {}))
        own = {"messages_ready": ready, "consumers": 0, "stats": counters, "arguments": {"x-max-length": 50}}
        return frame(*((queue("orders", **own),) if t >= 21 else ()))

    result = look(film(new, until=60))

    assert (112, 50) == (one(RULE, result).facts["lost"], one("queue-purged", result).facts["purged"])


def delaying(t, *, name="later", rate=20.0, ready=30, ttl=10_000, published=True, **fields):
    """A delay queue with room for 30 messages that leads to a queue whose consumers acknowledge all."""
    came = int(rate * t)
    out = {"x-message-ttl": ttl, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"}
    arguments = {**out, "x-max-length": 30, **fields.pop("arguments", {})}
    counters = stats(publish=came) if published else stats()
    source = queue(name, consumers=0, messages_ready=ready, arguments=arguments, stats=counters, **fields)
    return frame(source, flowing(t, "work", published=0.0, acked=rate))


@pytest.mark.parametrize(
    "fields",
    [{}, {"name": "mails.5m", "rate": 4.0, "ttl": 300_000}, {"published": False}, {"type": "quorum", "ready": 31}],
    ids=["full", "slow", "fed by dead letters", "a quorum queue"],
)
def test_a_full_delay_queue_hands_its_messages_on_too_early(fields):
    """None is lost, and none waits for its TTL."""
    finding = one(RULE, look(film(lambda t: delaying(t, **fields), until=60)))

    assert ("info", fields.get("name", "later")) == (finding.severity, finding.subject.name)
    assert fields.get("ttl", 10_000) / 1000 == finding.facts["delay"]["ttl_seconds"]
    assert "too early. None is lost." in text(finding).summary
    assert "reject-publish" not in str(text(finding).steps)


@pytest.mark.parametrize(
    "fields",
    [
        {"ready": 20, "rate": 2.0},
        {"ready": 29, "rate": 2.9},
        {"arguments": {"x-overflow": "reject-publish"}},
        {"arguments": {"x-dead-letter-routing-key": "nowhere"}, "published": False},
        {"ready": 30, "rate": 0.0, "ttl": 3_600_000, "published": False},
    ],
    ids=["room left", "as many as its TTL makes", "refuses", "no target", "it only holds what came once"],
)
def test_a_delay_queue_that_may_delay_is_left_alone(fields):
    """Messages that wait for their TTL fill the queue to a level, too."""
    assert [] == of(RULE, look(film(lambda t: delaying(t, **fields), until=60)))


def bursting(t, *, many=24, every=6, kept=10, **fields):
    """Every few seconds many messages come at once; those beyond the limit are dropped, and consumers take the rest."""
    bursts = int(t // every) + 1
    counters = stats(publish=many * bursts, deliver=kept * bursts, deliver_get=kept * bursts, ack=kept * bursts)
    defaults = {"messages_ready": 0, "messages_unacked": 0, "messages": 0, "consumers": 1}
    return queue(stats=counters, **{**defaults, **fields})


BYTES = {"policy": "cap", "effective_policy": {"max-length-bytes": 200_000}}
NUMBER = {"policy": "cap", "effective_policy": {"max-length": 10}}


@pytest.mark.parametrize(
    "limit", [NUMBER, BYTES, {"arguments": {"x-max-length": 10}}], ids=["number", "bytes", "argument"]
)
def test_bursts_that_fill_it_between_two_readings_lose_messages(limit):
    """No reading shows a message. It is likely, not proven: an expiration of the messages looks the same."""
    for until, severity in ((50, "info"), (100, "warning")):
        finding = one(RULE, look(film(lambda t: frame(bursting(t, **limit)), until=until)))
        words = text(finding)

        assert (severity, Certainty.LIKELY) == (finding.severity, finding.certainty)
        assert "loses messages in bursts" in words.summary
        assert ("Raise the limit" in words.steps[0].text) == ("policy" in limit)
    assert "unexplained-loss" not in [
        each.rule for each in look(film(lambda t: frame(bursting(t, **limit)), until=100)).findings
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"many": 9, "kept": 9},
        {"kept": 24},
        {"many": 8, "kept": 4},
        {"effective_policy": {"max-length": 10, "message-ttl": 1000}},
        {"effective_policy": {"max-length": 10, "overflow": "reject-publish"}},
        {"consumers": 0},
    ],
    ids=["fits", "all consumed", "less than the limit is lost", "it may expire", "it refuses", "nobody consumes"],
)
def test_what_a_limit_does_not_explain_is_not_laid_at_its_door(change):
    """Bursts below the limit, or another reason that the settings allow."""
    assert [] == of(RULE, look(film(lambda t: frame(bursting(t, **{**NUMBER, **change})), until=100)))


def test_messages_whose_size_is_seen_must_fill_it():
    """Two hundred kilobytes are far more than 24 small messages."""
    seen = {"messages": 2, "messages_ready": 2, "message_bytes": 600, "message_bytes_ready": 600}

    assert [] == of(RULE, look(film(lambda t: frame(bursting(t, **BYTES, **seen)), until=100)))


def sized(large, *, small=300, limit=40_000, argument=True, every=20.0, pace=5.0):
    """A queue with a limit of bytes; a large message waits in it for half of the time, and messages are lost."""

    def frame(t):
        has_large = large and t % every < every / 2
        ready = 4 if has_large else limit // small // 3
        size = (ready - bool(has_large)) * small + (large if has_large else 0)
        settings = {"max-length-bytes": limit}
        return {
            "queues": (
                queue(
                    "scans",
                    messages_ready=ready,
                    message_bytes=size,
                    message_bytes_ready=size,
                    stats=stats(publish=int(100 + 8 * t), ack=int(pace * t), deliver=int(pace * t)),
                    arguments={"x-max-length-bytes": limit} if argument else {},
                    effective_policy={} if argument else settings,
                    policy=None if argument else "cap",
                ),
            ),
        }

    return frame


@pytest.mark.parametrize(("large", "limit", "small"), [(39_500, 40_000, 300), (700_000, 800_000, 2000)])
@pytest.mark.parametrize("argument", [True, False])
def test_a_large_message_that_pushes_out_small_ones_is_named(large, limit, small, argument):
    """A limit of bytes; more consumers do not help against it."""
    finding = one(RULE, look(film(sized(large, limit=limit, small=small, argument=argument), until=120)))

    assert large == finding.facts["large_bytes"]
    assert (None if argument else 5 * large) == finding.facts["max_length_bytes_raised"]
    assert "push out many small ones" in full_text(finding)


def test_messages_of_one_size_are_not_unequal():
    """The limit is reached by their number."""
    held = {"ready": 100, "message_bytes": 39_900, "message_bytes_ready": 39_900}
    finding = one(RULE, shot(120, acked=5.0, arguments={"x-max-length-bytes": 40_000}, **held))

    assert finding.facts["large_bytes"] is None
    assert "differ much in size" not in full_text(finding)


def test_the_summary_of_a_cause_says_that_messages_are_lost():
    """Consumers that hang let the queue fill up; who reads one sentence only must not miss the loss."""

    def stands(t):
        held = {"messages_unacked": 10, "message_bytes_ready": None}
        counters = stats(publish=int(100 + 8 * t), ack=50, deliver=60, deliver_get=60)
        here = queue("orders", messages_ready=min(10, int(40 + 8 * t)), stats=counters, arguments=LIMITED, **held)
        mine = stats(ack=50, deliver=60)
        return {
            "queues": (here,),
            "consumers": (consumer(),),
            "channels": (channel(messages_unacked=10, stats=mine, idle_since=WALL - 100),),
            "connections": (connection(connected_at=WALL - 900),),
        }

    verdict = look(film(stands, until=100))
    cause = next(each for each in verdict.findings if each.consequences)
    lost = one(RULE, verdict)

    assert ["stuck-consumer", [RULE]] == [cause.rule, [each.rule for each in cause.consequences]]
    assert text(cause).summary.endswith(f"So messages are lost: {text(lost).summary}")
    assert "So messages are lost" not in text(lost).summary


@pytest.mark.parametrize(
    ("rate", "limit", "lasts", "name"), [(14, 50, 12, "orders"), (40, 200, 11, "a.b1"), (6, 10, 16, "q")]
)
def test_a_brief_loss_beside_a_client_that_polls_is_counted_exactly(rate, limit, lasts, name):
    """Its channel is open and has counted all that it took, so that no count of an ended channel is missing."""

    def polled(t):
        published = int(rate * min(max(t - 10, 0), lasts))
        taken = published // 2
        ready = min(published - taken, limit)
        waiting = queue(
            name,
            messages_ready=ready,
            messages_unacked=0,
            consumers=0,
            arguments={"x-max-length": limit},
            stats=stats(publish=published, get=taken, deliver_get=taken),
        )
        return frame(waiting) | {"channels": (channel(stats=stats(get=taken, deliver_get=taken)),)}

    finding = one(RULE, look(film(polled, until=40)))

    assert rate * lasts - rate * lasts // 2 - limit == finding.facts["lost"]
