"""Diagnosis of brokers whose figures come from the Prometheus endpoints of their nodes."""

from dataclasses import replace

import pytest

from ackscope.findings import FieldRef, Impact
from ackscope.second_source import Disagreement, MetricsReading, SettingsUnknown
from ackscope.snapshot import FAMILIES, Node, Overview, Part, ProcessLists
from diagnosis.contract import Rule
from diagnosis.preconditions import CLIENT_LISTS
from diagnosis.text import Cluster, render, render_inconclusive
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import look, moment, queue, snapshot, stats

READY = ("/metrics/detailed", "rabbitmq_detailed_queue_messages_ready")


def window_of(frame, *, reading, version="4.3.6", until=90, statistics=False):
    """A film in which the figures of the queues come from the endpoints."""
    window = Window.empty("shop")
    for seconds in range(0, until, 5):
        overview = Overview(rabbitmq_version=version, statistics=statistics, rates_mode="basic")
        taken = snapshot(seconds, overview=overview, **frame(seconds))
        taken = replace(
            taken,
            queues=replace(taken.queues, origins={"messages_ready": READY}),
            prometheus=Part(value=reading, at=moment(seconds)),
        )
        unread = set(FAMILIES) - set(reading.families) if reading.alone else CLIENT_LISTS if statistics is False else ()
        taken = replace(taken, **dict.fromkeys(unread, Part()))
        window = window.add(taken)
    return window


JOINED = MetricsReading(nodes=("rabbit@a",), families=("queues", "overview", "nodes"))
ALONE = MetricsReading(nodes=("rabbit@a",), families=("queues", "overview", "nodes", "health"), alone=True)


def unread_by_anyone(seconds, **known):
    """A queue that fills up and has no consumer any more."""
    counters = stats(publish=1000 + 10 * seconds, deliver=1000, ack=1000, deliver_get=1000)
    filling = queue(messages_ready=10 * seconds, messages_unacked=0, consumers=0, stats=counters, **known)
    return {"queues": (filling,)}


def test_evidence_names_the_endpoint():
    """The finding is the same, and its evidence says where the figure was read."""
    verdict = look(window_of(unread_by_anyone, reading=JOINED))
    (finding,) = [each for each in verdict.findings if each.rule == "no-consumer"]

    sources = {ref for each in finding.evidence for ref in each.source}

    assert FieldRef(*READY) in sources
    assert FieldRef("/api/queues", "messages_ready") not in sources


def test_counters_of_the_endpoints_are_counters():
    """Only exchanges have none there, so what an alternate exchange took is unknown."""
    verdict = look(window_of(unread_by_anyone, reading=JOINED))

    assert ["pub-unroutable-alternate"] == [gap.rule for gap in verdict.inconclusive if gap.reason == "no_counters"]
    assert {"monitoring-blind-spot": "info"}.items() <= {it.rule: it.severity for it in verdict.findings}.items()


@pytest.mark.parametrize(
    ("reading", "version", "reason"),
    [
        (JOINED, "3.10.8", "no_queue_counters"),
        (replace(JOINED, unread={"b:15692": "refused"}), "4.3.6", "metrics_incomplete"),
    ],
)
def test_counters_that_are_not_there_are_not_judged(reading, version, reason):
    """Before 4.0 only channels count; and a sum over nodes needs all of them."""
    verdict = look(window_of(unread_by_anyone, reading=reading, version=version))

    assert {reason} == {gap.reason for gap in verdict.inconclusive if gap.rule == "maxlen-drop-head"}


def test_what_only_the_endpoints_cannot_tell_has_one_reason():
    """In the same words for every rule, so that it is listed once; and no rule takes an unknown setting for none."""
    window = window_of(lambda seconds: unread_by_anyone(seconds, settings_known=False), reading=ALONE, statistics=None)

    verdict = look(window)

    unprobed = [gap for gap in verdict.inconclusive if "probe" in render_inconclusive(gap).because]
    rest = [gap for gap in verdict.inconclusive if gap not in unprobed and not gap.permanent]

    assert {"only_metrics"} == {gap.reason for gap in rest}
    assert 1 == len({(text.because, text.needs) for text in map(render_inconclusive, rest)})
    assert len({gap.rule for gap in verdict.inconclusive}) == len(verdict.inconclusive)
    assert [] == [it.rule for it in verdict.findings if it.rule in {"orphan-queue", "stream-unbounded"}]


def test_the_endpoints_have_no_health_check():
    """They have the alarms, which count as read; a rule that needs another check is not silent."""
    verdict = look(window_of(unread_by_anyone, reading=ALONE, statistics=None))
    reasons = {gap.rule: gap.reason for gap in verdict.inconclusive}

    assert ["only_metrics"] * 2 == [reasons[rule] for rule in ("vhost-down", "tls-certificate-expiry")]


@pytest.mark.parametrize("rule", ["requeue-loop", "poison-drop"])
def test_consumers_that_nothing_counts_are_not_judged_without_their_list(rule):
    """Those of AMQP 1.0; before 4.0 there are none."""
    found = [look(window_of(unread_by_anyone, reading=JOINED, version=version)) for version in ("4.3.6", "3.10.8")]

    assert [["no_client_lists"], ["no_queue_counters"]] == [
        [gap.reason for gap in verdict.inconclusive if gap.rule == rule] for verdict in found
    ]


@pytest.mark.parametrize(("reading", "reason"), [(ALONE, "only_metrics"), (JOINED, "no_client_lists")])
def test_large_messages_that_pass_are_not_judged_without_clients(reading, reason):
    """They are in no queue; those that are stored are still reported."""
    window = window_of(lambda _: {"queues": (queue(messages_ready=10, message_bytes=20 * 1_048_576),)}, reading=reading)

    verdict = look(window)

    assert [reason] == [gap.reason for gap in verdict.inconclusive if gap.rule == "large-messages"]
    assert ["large-messages"] == [it.rule for it in verdict.findings if it.rule == "large-messages"]


def test_a_rule_that_asks_for_an_unknown_setting_is_inconclusive():
    """What it found before stays."""

    def evaluate(view):
        for each in view.queues:
            each.setting("max-length")
            yield

    asking = Rule(
        name="maxlen-drop-head", impact=Impact.LOSS, needs=("queues",), compares_counters=False, evaluate=evaluate
    )
    window = window_of(lambda t: unread_by_anyone(t, settings_known=False), reading=ALONE, statistics=None)

    verdict = look(window, rules=[asking])

    assert [("maxlen-drop-head", "only_metrics")] == [(gap.rule, gap.reason) for gap in verdict.inconclusive]


def test_a_setting_that_is_unknown_is_not_absent():
    """Absent would mean that it is not set."""
    with pytest.raises(SettingsUnknown):
        queue(settings_known=False).setting("max-length")


def test_steps_that_ask_the_management_api_are_left_out_without_one():
    """Nobody could follow them."""
    window = window_of(unread_by_anyone, reading=JOINED)
    cluster = Cluster.of(replace(window.latest, prometheus=Part(value=ALONE, at=moment(0))), "http://MANAGEMENT")
    reports = [render(each, cluster) for each in look(window).findings]

    assert not cluster.has_management
    assert [] == [step for report in reports for step in report.next_steps if "MANAGEMENT" in step]


def test_sources_that_disagree_are_one_finding():
    """With both values."""
    different = tuple(
        Disagreement(vhost="/", queue=f"q{index}", figure="messages_ready", metric=READY[1], management=9, prometheus=4)
        for index in range(7)
    )
    reading = replace(JOINED, families=(), disagreements=different)
    window = window_of(lambda t: {"queues": ()}, reading=reading, statistics=True)

    (finding,) = [each for each in look(window).findings if each.rule == "sources-disagree"]
    report = render(finding)

    assert (7, 5) == (finding.facts["figures"], len(finding.evidence))
    assert "9 in the management API, 4 in the Prometheus endpoint" == report.evidence[0].value
    assert "/metrics/detailed rabbitmq_detailed_queue_messages_ready" in report.evidence[0].source


def test_sources_that_agree_are_not_reported():
    """Neither is a broker with one source."""
    window = window_of(lambda t: {"queues": ()}, reading=replace(JOINED, families=()), statistics=True)

    assert [] == [each for each in look(window).findings if each.rule == "sources-disagree"]


UNKNOWN = {"settings_known": False, "durable": None, "exclusive": None, "auto_delete": None}


def of_queues(*frames, until=120):
    """The verdict on queues where only the endpoints are read; which channels consume from them does not follow."""

    def frame(seconds):
        lists = Part(value=ProcessLists(channels=(), consumers=(), used={}), at=moment(seconds))
        return {"queues": tuple(each(seconds) for each in frames), "processes": lists}

    return look(window_of(frame, reading=ALONE, statistics=None, until=until))


def growing(name, *, consumed, vhost="/"):
    """A queue that gets ten messages a second and has no consumer."""

    def frame(seconds):
        taken = 1000 if consumed else 0
        counters = stats(publish=taken + 10 * seconds + 50, deliver=taken, ack=taken, deliver_get=taken)
        ready = 10 * seconds + 50
        return queue(
            name,
            vhost=vhost,
            messages=ready,
            messages_ready=ready,
            messages_unacked=0,
            consumers=0,
            stats=counters,
            **UNKNOWN,
        )

    return frame


def idle(name, vhost):
    """An empty queue with a consumer that never got a message."""
    return lambda _: queue(
        name,
        vhost=vhost,
        messages=0,
        messages_ready=0,
        messages_unacked=0,
        consumers=1,
        stats=stats(publish=0),
        **UNKNOWN,
    )


@pytest.mark.parametrize("other", ["dead.letters", "wait.30s"])
def test_a_queue_that_was_consumed_is_judged_beside_one_of_which_nothing_is_known(other):
    """It is neither a delay queue nor one for dead letters; the other may be one."""
    verdict = of_queues(growing("tasks", consumed=True), growing(other, consumed=False))

    assert ["tasks"] == [each.subject.name for each in verdict.findings if each.rule == "no-consumer"]
    assert ["only_metrics"] == [gap.reason for gap in verdict.inconclusive if gap.rule == "no-consumer"]


def test_a_queue_whose_consumers_wait_elsewhere_is_for_work():
    """They wait at its namesake in another virtual host."""
    verdict = of_queues(growing("billing", consumed=False), idle("billing", "billing"))
    (finding,) = [each for each in verdict.findings if each.rule == "no-consumer"]

    assert ("billing", "billing") == (finding.subject.name, finding.facts["similar_vhost"])


def test_a_queue_that_outlives_its_auto_ack_consumer_is_judged_without_settings():
    """What was just sent to it is lost. While a consumer stays, its queue may be deleted with it."""

    def frame(seconds):
        sent = 10 * min(seconds, 60)
        counters = stats(publish=10 * seconds, deliver_no_ack=sent, deliver_get=sent)
        ready = 10 * seconds - sent
        return queue(
            "feed",
            messages=ready,
            messages_ready=ready,
            messages_unacked=0,
            consumers=int(seconds <= 60),
            stats=counters,
            **UNKNOWN,
        )

    ended, stays = of_queues(frame), of_queues(frame, until=60)

    assert ["feed"] == [each.subject.name for each in ended.findings if each.rule == "auto-ack-consumer"]
    assert [] == [each for each in stays.findings if each.rule == "auto-ack-consumer"]
    assert "only_metrics" in [gap.reason for gap in stays.inconclusive if gap.rule == "auto-ack-consumer"]


def test_a_queue_that_delivers_nothing_to_consumers_of_which_none_is_listed_is_inconclusive():
    """It may have a single active consumer, none of which is active."""

    def frame(seconds):
        counters = stats(publish=10 * seconds + 100, deliver=100, ack=100, deliver_get=100)
        ready = 10 * seconds
        return queue(
            "jobs", messages=ready, messages_ready=ready, messages_unacked=0, consumers=2, stats=counters, **UNKNOWN
        )

    verdict = of_queues(frame)
    (gap,) = [gap for gap in verdict.inconclusive if (gap.rule, gap.reason) == ("sac-none-active", "active_unknown")]

    assert "'jobs' in vhost '/'" in render_inconclusive(gap).because


@pytest.mark.parametrize("consumed", [True, False])
def test_a_queue_that_is_gone_with_its_messages_is_reported_without_its_settings(consumed):
    """They would tell whether the broker deleted it; the text says what may have."""
    gone, node = growing("night.batch", consumed=consumed), Node(name="rabbit@a", running=True, uptime_seconds=90_000.0)
    window = window_of(
        lambda seconds: {
            "nodes": (node,),
            "queues": (idle("other", "/")(seconds), *([gone(seconds)] if seconds < 60 else [])),
        },
        reading=ALONE,
        statistics=None,
        until=100,
    )
    (finding,) = [each for each in look(window).findings if each.rule == "queue-deleted"]
    shown = render(finding, Cluster("shop"))

    assert "night.batch" == finding.subject.name
    assert "Its settings are not known" in shown.cause
    assert "A client or a person deleted it." not in shown.cause
