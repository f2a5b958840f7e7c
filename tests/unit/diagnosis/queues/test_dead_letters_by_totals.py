"""Queues that dead letters fill and queues that were purged, where only the Prometheus endpoints are read."""

from dataclasses import replace

import pytest

from ackscope.findings import Severity
from ackscope.second_source import NativeTotals
from diagnosis.text import Cluster, render
from tests.unit.diagnosis.pictures import look
from tests.unit.diagnosis.queues.test_messages_discarded import figures, reads, steady, totals


def shot(make, native):
    """The result for queues and totals that two functions return at so many seconds."""
    return look(reads(lambda t: ([*make(t), steady("calm", t)], native(t))))


def found(rule, result):
    """The findings of a rule, and the reasons for which it cannot tell."""
    return [each for each in result.findings if each.rule == rule], [
        each.reason for each in result.inconclusive if each.rule == rule
    ]


def counts(seconds, *, dead=0.0, others=0.0):
    """Totals with so many dead letters and messages deleted otherwise, a second."""
    return NativeTotals(
        to_confirm=10 * seconds,
        confirmed=10 * seconds,
        unconfirmed=0,
        dead_lettered={"rejected": 5 + round(dead * seconds), "expired": 9},
        types={"classic": totals(expired=7 + round(others * seconds)), "quorum": totals()},
    )


@pytest.mark.parametrize(("rate", "name"), [(1.0, "failed"), (4.0, "a.b1"), (60.0, "orders")])
def test_a_queue_that_grows_by_as_many_messages_as_are_dead_lettered_takes_dead_letters(rate, name):
    """Its name does not matter, and nothing is known of where they come from."""
    result = shot(
        lambda t: [figures(name, ready=round(rate * t) + 3)], lambda t: counts(t, dead=1.5 * rate, others=0.0)
    )

    ((finding,), reasons) = found("dlq-filling", result)
    text = render(finding, Cluster("shop"))
    assert ([], name, Severity.INFO) == (reasons, finding.subject.name, finding.severity)
    assert {"rejected"} == {each["reason"] for each in finding.facts["totals"]}
    assert "rejected by a consumer" in str(text)


@pytest.mark.parametrize(
    ("fields", "dead"),
    [({}, 0.0), ({}, 1.0), ({"consumers": 1}, 4.0), ({"publish": True}, 4.0)],
    ids=["none", "few", "consumed", "published"],
)
def test_what_arrives_otherwise_is_not_dead_lettered(fields, dead):
    """AMQP 1.0 clients publish uncounted; work that waits for a consumer may come out of a delay queue."""

    def make(seconds):
        counted = {"publish": 4 * seconds + 1} if fields.get("publish") else {}
        return [figures("failed", ready=4 * seconds + 3, consumers=fields.get("consumers", 0), **counted)]

    assert ([], ["only_metrics"]) == found("dlq-filling", shot(make, lambda t: counts(t, dead=dead)))


@pytest.mark.parametrize("backlog", [40, 3000])
@pytest.mark.parametrize("others", [0.0, 0.1])
def test_a_queue_that_is_empty_at_once_was_purged(backlog, others):
    """What the totals count meanwhile is too little to explain it."""
    ((finding,), _) = found("queue-purged", shot(lambda t: [purged(t, backlog)], lambda t: counts(t, others=others)))

    assert (backlog, "exports") == (finding.facts["purged"], finding.subject.name)


@pytest.mark.parametrize("backlog", [40, 3000])
def test_a_new_queue_that_was_purged_before_its_first_reading_lacks_what_no_total_counts(backlog):
    """The endpoints are read every 15 s, and its counters tell of all that has happened since it was made."""

    def make(seconds):
        return [figures("exports", ready=2, publish=backlog + 2)] if seconds >= 30 else []

    ((finding,), _) = found("queue-purged", shot(make, counts))

    assert (backlog, Severity.WARNING) == (finding.facts["purged"], finding.severity)


@pytest.mark.parametrize("rate", [1, 20])
def test_messages_that_leave_all_the_time_were_not_purged(rate):
    """Nothing counts them; an AMQP 1.0 client may take them."""
    result = shot(lambda t: [figures("exports", ready=2, publish=rate * t + 2)], counts)

    assert ([], ["only_metrics"]) == found("queue-purged", result)


def purged(seconds, backlog):
    """A queue whose backlog is gone after 40 s."""
    return figures("exports", ready=backlog if seconds <= 40 else 0, publish=backlog)


def test_what_expired_at_once_was_not_purged():
    """The totals count it."""

    def expired(seconds):
        return replace(counts(seconds), types={"classic": totals(expired=7 + (300 if seconds > 38 else 0))})

    assert ([], ["only_metrics"]) == found("queue-purged", shot(lambda t: [purged(t, 300)], expired))


def test_confirms_that_come_do_not_hide_what_expired():
    """Fewer publishes wait than before, so fewer are unconfirmed."""

    def native(seconds):
        late = seconds > 38
        expired = {"classic": totals(expired=7 + (300 if late else 0))}
        return replace(counts(seconds), confirmed=10 * seconds - (0 if late else 400), types=expired)

    assert ([], ["only_metrics"]) == found("queue-purged", shot(lambda t: [purged(t, 300)], native))


@pytest.mark.parametrize("rate", [3, 8])
def test_what_another_queue_loses_does_not_hide_a_purge(rate):
    """The totals count as many messages as that queue lacks, so they do not explain the purge."""

    def make(seconds):
        dropping = figures("ticks", ready=50, publish=50 + rate * seconds)
        return [purged(seconds, 60), dropping]

    ((finding,), _) = found("queue-purged", shot(make, lambda t: counts(t, others=rate)))
    assert 60 == finding.facts["purged"]
