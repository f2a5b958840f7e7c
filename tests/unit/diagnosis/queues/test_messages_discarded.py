"""Messages that queues deleted, on clusters where only the Prometheus endpoints are read."""

from dataclasses import replace

import pytest

from ackscope.findings import Certainty, Severity
from ackscope.second_source import NativeTotals, QueueTypeTotals
from ackscope.snapshot import FAMILIES, Overview, Part
from diagnosis.text import Cluster, render
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import look, moment, queue, snapshot, stats
from tests.unit.diagnosis.test_metrics_source import ALONE, JOINED

RULE = "messages-discarded"
UNKNOWN = {"settings_known": False, "durable": None, "exclusive": None, "auto_delete": None}


def reads(frame, *, base=ALONE, until=90):
    """A window of queues and all totals: `frame` returns `(queues, totals)` at so many seconds."""
    window = Window.empty("shop")
    for seconds in range(0, until, 5):
        queues, native = frame(seconds)
        reading = replace(base, native=native)
        overview = Overview(rabbitmq_version="4.3.6", rates_mode="basic", statistics=None)
        taken = snapshot(seconds, overview=overview, queues=queues)
        taken = replace(taken, prometheus=Part(value=reading, at=moment(seconds)))
        unread = set(FAMILIES) - set(reading.families)
        window = window.add(replace(taken, **dict.fromkeys(unread, Part())))
    return window


def film(frame, *, base=ALONE, until=90):
    """The same, where `frame` returns `(queues, totals by type)`."""

    def whole(seconds):
        queues, types = frame(seconds)
        return queues, NativeTotals(types=types)

    return reads(whole, base=base, until=until)


def figures(name, *, ready, consumers=0, kind="classic", **counters):
    """A queue as the endpoints show it: lengths and counters, and no settings."""
    return queue(
        name=name,
        type=kind,
        messages=ready,
        messages_ready=ready,
        messages_unacked=0,
        consumers=consumers,
        stats=stats(**counters),
        **UNKNOWN,
    )


def losing(name, seconds, *, published, consumed, lost, ready=10, kind="classic"):
    """A consumed queue; each number is of messages a second, but `ready`."""
    taken = round(consumed * seconds) + 100
    assert round(published * seconds) == round((consumed + lost) * seconds)
    arrived = taken + round(lost * seconds) + ready
    counters = {"publish": arrived, "deliver": taken, "ack": taken, "deliver_get": taken, "redeliver": 0}
    return figures(name, ready=ready, consumers=1, kind=kind, **counters)


def rejecting(name, seconds, *, lost, kind="quorum"):
    """A queue whose consumer rejects so many of ten messages a second."""
    delivered, rejected = 10 * seconds, round(lost * seconds)
    counters = {"publish": delivered, "deliver": delivered, "ack": delivered - rejected, "deliver_get": delivered}
    return figures(name, ready=0, consumers=1, kind=kind, redeliver=0, **counters)


def steady(name, seconds):
    """A queue that loses nothing."""
    return losing(name, seconds, published=20, consumed=20, lost=0)


def totals(**counts):
    """What queues of a type deleted; 7 for each other reason, since long before."""
    return QueueTypeTotals(**({"expired": 7, "over_length": 7, "rejected": 7, "over_limit": 7} | counts))


def found(window):
    """The findings of the rule."""
    return [each for each in look(window).findings if each.rule == RULE]


@pytest.mark.parametrize("reason", ["expired", "over_length"])
@pytest.mark.parametrize("rate", [2, 9])
@pytest.mark.parametrize("kind", ["classic", "quorum", None])
def test_the_queue_whose_ledger_lacks_as_many_is_named(reason, rate, kind):
    """Nothing but the total says why; the queue follows from what is missing in it. Before 4.1 no type is known."""

    def frame(seconds):
        queues = (
            losing("tasks.eu", seconds, published=20, consumed=20 - rate, lost=rate, kind=kind),
            steady("a", seconds),
        )
        return queues, {kind or "classic": totals(**{reason: 7 + rate * seconds})}

    (finding,) = found(film(frame))

    assert ("queue", "tasks.eu", Severity.WARNING) == (finding.subject.kind, finding.subject.name, finding.severity)
    assert {"reason": reason, "lost": rate * 85}.items() <= finding.facts.items()
    assert Certainty.LIKELY is finding.certainty


@pytest.mark.parametrize("reason", ["rejected", "over_limit"])
def test_what_is_deleted_after_a_delivery_is_missing_in_another_way(reason):
    """A queue that lost as many before a delivery is no candidate."""

    def frame(seconds):
        queues = (
            losing("latest", seconds, published=20, consumed=17, lost=3, kind="quorum"),
            rejecting("orders", seconds, lost=3),
        )
        return queues, {"quorum": totals(**{reason: 7 + 3 * seconds})}

    (finding,) = found(film(frame))

    assert "orders" == finding.subject.name


def test_two_queues_and_two_reasons_are_told_apart_by_their_numbers():
    """Each has its own finding."""

    def frame(seconds):
        queues = (
            losing("a", seconds, published=20, consumed=15, lost=5),
            losing("b", seconds, published=20, consumed=18, lost=2),
        )
        return queues, {"classic": totals(expired=7 + 2 * seconds, over_length=7 + 5 * seconds)}

    reasons = {each.subject.name: each.facts["reason"] for each in found(film(frame))}

    assert {"a": "over_length", "b": "expired"} == reasons


def test_queues_that_lost_as_many_are_listed_and_none_is_named():
    """Rather the cluster than the wrong queue."""

    def frame(seconds):
        queues = tuple(losing(name, seconds, published=20, consumed=17, lost=3) for name in ("a", "b"))
        return queues, {"classic": totals(expired=7 + 3 * seconds, over_length=7 + 3 * seconds)}

    (finding,) = found(film(frame))
    text = render(finding, Cluster("shop")).summary

    assert ("cluster", Certainty.CERTAIN) == (finding.subject.kind, finding.certainty)
    assert ["'a' in vhost '/'", "'b' in vhost '/'"] == finding.facts["candidates"]
    assert "255 because they expired (classic), 255 at a length limit (classic)" in " ".join(text.split())


def test_a_loss_without_a_consumer_is_information():
    """Telemetry that nobody reads may expire."""

    def frame(seconds):
        counters = stats(publish=10 * seconds + 50, deliver=0, ack=0, deliver_get=0)
        kept = queue(
            name="telemetry", messages=50, messages_ready=50, messages_unacked=0, consumers=0, stats=counters, **UNKNOWN
        )
        return (kept,), {"classic": totals(expired=7 + 10 * seconds)}

    assert [Severity.INFO] == [each.severity for each in found(film(frame))]


@pytest.mark.parametrize("noise", [0, 3, -3])
def test_a_busy_queue_is_not_named_for_one_that_is_gone(noise):
    """It seems to lack as many as it moves in some seconds, and that may be as many as were counted."""

    def frame(seconds):
        late = 100 + noise if seconds >= 30 else 0
        counters = stats(publish=60 * seconds + late, deliver=60 * seconds, ack=60 * seconds, deliver_get=60 * seconds)
        busy = queue(
            name="busy", messages=0, messages_ready=0, messages_unacked=0, consumers=1, stats=counters, **UNKNOWN
        )
        return (busy, steady("a", seconds)), {"classic": totals(expired=7 + min(100, 20 * max(0, seconds - 10)))}

    assert [("cluster", Severity.INFO)] == [(each.subject.kind, each.severity) for each in found(film(frame))]


def test_what_was_counted_before_is_no_finding():
    """A total that does not rise says nothing about now."""
    window = film(lambda seconds: ((steady("a", seconds),), {"classic": totals(), "quorum": totals()}))

    assert [] == found(window)


def test_probes_lose_messages_on_purpose():
    """Their queues are no candidates; what they lose is nobody's loss."""

    def frame(seconds):
        return (rejecting("ackscope.probe.x", seconds, lost=5), steady("a", seconds)), {
            "quorum": totals(rejected=7 + 5 * seconds)
        }

    assert [] == found(film(frame))


def test_where_settings_are_read_other_rules_name_the_loss():
    """They know limits, times to live and clients."""

    def frame(seconds):
        lossy = losing("tasks", seconds, published=20, consumed=15, lost=5)
        return (lossy,), {"classic": totals(expired=7 + 5 * seconds)}

    assert [] == found(film(frame, base=JOINED))


def refusing(*, refused, unconfirmed=(0, 0, 0), queues=1, ended=0.0):
    """Publishers with confirms, and a queue that refuses so many publishes a second."""

    def frame(seconds):
        full = losing("a.b1", seconds, published=9, consumed=9 - refused, lost=refused, ready=10)
        held = [full if refused else steady("a.b1", seconds), *(steady(f"calm{it}", seconds) for it in range(queues))]
        waiting = unconfirmed[seconds // 5 % len(unconfirmed)]
        sent = 500 + 60 * seconds
        return held, NativeTotals(
            to_confirm=sent,
            confirmed=sent - 500 - round((refused + ended) * seconds) - waiting,
            unconfirmed=waiting,
            types={"classic": totals(), "quorum": totals()},
        )

    return reads(frame)


@pytest.mark.parametrize("refused", [2, 7])
@pytest.mark.parametrize("unconfirmed", [(0,), (0, 3, 9)])
def test_what_a_queue_refuses_is_what_is_neither_confirmed_nor_unconfirmed(refused, unconfirmed):
    """Its own ledger lacks as many messages."""
    (finding,) = found(refusing(refused=refused, unconfirmed=unconfirmed))

    assert ("refused", "a.b1", Severity.WARNING) == (finding.facts["reason"], finding.subject.name, finding.severity)
    assert 0 <= refused * 85 - finding.facts["lost"] <= max(unconfirmed)
    assert "refused, with a nack" in render(finding, Cluster("shop")).summary


@pytest.mark.parametrize(
    "fields",
    [{"unconfirmed": (0, 400, 900)}, {"unconfirmed": (900, 0, 10)}, {"ended": 4.0}],
    ids=["many", "fewer", "publishers-end"],
)
def test_publishes_that_wait_for_confirms_were_not_refused(fields):
    """However many there are, and also if publishers end before their confirms."""
    assert [] == found(refusing(refused=0, **fields))


def together(*lost):
    """Queues that lose so many messages a second at their limit, one more than the other, and what is counted."""

    def frame(seconds):
        lacking = [losing(f"q{it}", seconds, published=2 + each, consumed=2, lost=each) for it, each in enumerate(lost)]
        counted = totals(over_length=7 + sum(lost) * seconds)
        return [*lacking, steady("calm", seconds)], {"classic": counted}

    return {(each.subject.name, each.facts["lost"]) for each in found(film(frame))}


@pytest.mark.parametrize("lost", [(3, 4), (6, 6), (2, 9, 5)])
def test_queues_that_lose_as_many_together_as_were_counted_are_all_named(lost):
    """Each with its own number."""
    assert {(f"q{it}", 85 * each) for it, each in enumerate(lost)} == together(*lost)


def test_queues_that_lose_more_together_than_was_counted_are_not_named():
    """Some of them lose messages for another reason."""

    def frame(seconds):
        lacking = [losing(f"q{it}", seconds, published=25, consumed=20, lost=5) for it in range(3)]
        return lacking, {"classic": totals(over_length=7 + 10 * seconds)}

    assert {"shop"} == {each.subject.name for each in found(film(frame))}


@pytest.mark.parametrize(("lost", "name"), [(3, "replies"), (8, "a.b1")])
def test_what_expires_when_a_consumer_returns_it_is_named(lost, name):
    """It was delivered before."""

    def frame(seconds):
        return [rejecting(name, seconds, lost=lost, kind="classic"), steady("calm", seconds)], {
            "classic": totals(expired=7 + lost * seconds)
        }

    (finding,) = found(film(frame))
    assert (name, "expired") == (finding.subject.name, finding.facts["reason"])
