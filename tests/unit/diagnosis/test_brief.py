from dataclasses import replace

import pytest

from ackscope.findings import Certainty, Finding, Involved, QueueRef, Severity, Subject, exit_code
from diagnosis.brief import diagnose_briefly, may_be_losing, unsettled
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.test_republish_loop import circling
from tests.unit.diagnosis.pictures import (
    WALL,
    WORKED,
    channel,
    consumer,
    film,
    found,
    look,
    only,
    queue,
    stats,
    stuck,
    text,
)


def without_consumer(backlog, rate=20):
    """A film of a queue without a consumer and this backlog at the start."""

    def frame(t):
        counters = stats(publish=int(8000 + rate * t), ack=8000 - backlog)
        return {"queues": (queue("payments", consumers=0, messages_ready=int(backlog + rate * t), stats=counters),)}

    return frame


def one_look(frame):
    """The diagnosis of two snapshots 6 s apart."""
    window = film(frame, until=6, every=6)
    return diagnose_briefly(window, (), window.latest.taken)


def test_a_deployment_is_no_warning():
    """Consumers are away for a few seconds: the exit code is 0, and the finding says what it becomes."""
    result = one_look(without_consumer(backlog=100))
    finding = only(result)

    assert ("no-consumer", "info", Severity.WARNING) == (finding.rule, finding.severity, finding.if_it_lasts)
    assert 0 == exit_code([result])
    assert "A deployment looks the same for up to 3 min." in text(finding).summary


def test_an_outage_is_a_warning_at_the_first_look():
    """The backlog took longer to arrive than a deployment lasts."""
    finding = only(one_look(without_consumer(backlog=20 * 600)))

    assert ("no-consumer", "warning", None) == (finding.rule, finding.severity, finding.if_it_lasts)


def test_an_observation_goes_on_only_for_what_would_be_worse():
    """A critical finding is reported at once: whatever else may become a warning does not change the exit code."""
    early = replace(only(one_look(without_consumer(backlog=100))), if_it_lasts=Severity.WARNING)
    alone = one_look(without_consumer(backlog=100))
    both = replace(alone, findings=(replace(early, severity=Severity.CRITICAL, if_it_lasts=None), early))

    assert [early.rule] == [each.rule for each in unsettled(replace(alone, findings=(early,)), 300.0)]
    assert [] == unsettled(both, 300.0)
    worse = replace(early, if_it_lasts=Severity.CRITICAL)
    settled = replace(early, severity=Severity.WARNING, if_it_lasts=None)
    assert [worse] == unsettled(replace(alone, findings=(settled, worse)), 300.0)


NOTHING = one_look(lambda _: {"queues": ()})
"""The result of a look at a broker without queues."""


def passing(t, *, lost=0.0, skew=0.0, rate=8.0):
    """A queue whose consumer takes what is not lost; its counters may be ahead of its length by some seconds."""
    published, acked = int(rate * (t + skew)), int((rate - lost) * t)
    counters = stats(publish=published, deliver=acked, ack=acked)
    return {"queues": (queue("orders", messages_ready=0, stats=counters),)}


def test_an_observation_goes_on_where_messages_may_be_missing():
    """Two readings of counters prove no loss, because they differ in age; the difference of age does not grow."""
    windows = [film(lambda t, lost=lost: passing(t, lost=lost), until=6, every=6) for lost in (0.0, 5.0)]

    assert [False, True] == [may_be_losing(window, window.latest.taken, NOTHING) for window in windows]
    ahead = [film(lambda t: passing(t, skew=4.0 * (t > 0)), until=until, every=6) for until in (6, 24)]
    assert [True, False] == [may_be_losing(window, window.latest.taken, NOTHING) for window in ahead]


@pytest.mark.parametrize("backlog", [100, 3000, 3700, 20_000])
def test_the_severity_is_that_of_an_exporter_with_the_same_readings(backlog):
    """Two readings, 9 s apart: the exporter needs 8 s for a rate, and says nothing early before 12 s."""
    window = film(without_consumer(backlog), until=9, every=9)
    here = diagnose_briefly(window, (), window.latest.taken)
    there = diagnose(window, (), window.latest.taken, replace_early(Thresholds()))

    assert found(there) == found(here)


def replace_early(thresholds):
    """The exporter's thresholds, with early findings after 4 s."""
    return thresholds.model_copy(update={"early": 4.0})


def test_what_only_lasting_would_show_is_information():
    """A finding that the exporter would not make yet is early, and without consequences."""

    def frame(t):
        counters = stats(publish=int(900 + 10 * t), ack=0, deliver=int(900 + 10 * t), redeliver=int(4000 + 300 * t))
        return {"queues": (queue("retries", messages_ready=0, messages_unacked=int(900 + 10 * t), stats=counters),)}

    result = one_look(frame)

    assert all(each.severity is Severity.INFO for each in result.findings)
    assert all(each.certainty is Certainty.EARLY for each in result.findings if each.if_it_lasts is not None)


def test_a_finding_says_when_the_exporter_would_make_it_a_warning():
    """And not when the second judgement does, which assumes that it has lasted."""
    finding = next(each for each in one_look(circling()).findings if each.rule == "republish-loop")

    assert (Severity.WARNING, 45.0) == (finding.if_it_lasts, finding.facts["warning_after_seconds"])


def test_only_findings_that_can_be_settled_in_time_are_worth_a_longer_look():
    """It becomes a warning after 3 min, of which 6 s have passed."""
    result = one_look(without_consumer(backlog=100))

    assert [] == unsettled(result, 60)
    assert ["no-consumer"] == [each.rule for each in unsettled(result, 180)]
    assert [] == unsettled(replace(result, findings=()), 180)


def test_what_the_broker_saw_before_the_first_look_counts():
    """The channel was idle for 31 s of the 40 s that make it critical, though it was looked at for 6 s."""
    window = film(stuck, start=WORKED + 26, until=WORKED + 32, every=6)
    result = diagnose_briefly(window, (), window.latest.taken)

    assert ["stuck-consumer"] == [each.rule for each in unsettled(result, 12)]
    assert [] == unsettled(result, 5)


def test_a_quiet_broker_is_quiet_both_ways():
    """Nothing is made up."""
    result = one_look(lambda t: {"queues": (queue("calm", stats=stats(publish=int(t), ack=int(t), deliver=int(t))),)})

    assert [] == [each for each in result.findings if each.if_it_lasts is not None]
    assert found(look(film(lambda t: {"queues": ()}, until=6, every=6))) == []


@pytest.mark.parametrize("renewed", [0, 5, 20, 45, 59])
def test_a_hung_consumer_is_found_at_every_second_of_the_minute(renewed):
    """The broker renews `idle_since` of a hung channel once a minute. A look that goes on for 45 s needs it not."""
    hung = 600

    def frame(t):
        counters = stats(publish=int(9000 + 5 * t), deliver=100, ack=90, deliver_get=100)
        at = WALL + hung + t
        last = at - (hung + t - renewed) % 60
        return {
            "queues": (queue(messages_ready=int(8000 + 5 * t), messages_unacked=10, stats=counters),),
            "consumers": (consumer(),),
            "channels": (channel(messages_unacked=10, stats=stats(deliver=100, ack=90), idle_since=last),),
        }

    def after(seconds):
        window = film(frame, start=hung, until=hung + seconds, every=5)
        return diagnose_briefly(window, (), window.latest.taken)

    first = after(10)

    assert 2 == exit_code([first]) or ["stuck-consumer"] == [it.rule for it in unsettled(first, 38)]
    assert [("stuck-consumer", "critical", "orders")] == found(after(45))


def rejecting(t, *, before, arguments=None, rate=5.0, share=0.2):
    """A queue whose consumer rejects a share, and has done so since 20 s before the first reading, or begins now."""
    published = int(rate * (t + before))
    acked = int((1 - share) * rate * (t + before))
    counters = stats(publish=published, deliver=published, deliver_get=published, ack=acked)
    return {"queues": (queue("bills", messages_ready=0, arguments=arguments or {}, stats=counters),)}


@pytest.mark.parametrize(
    ("fields", "goes_on"),
    [
        ({"before": 60}, True),
        ({"before": 60, "rate": 2.0, "share": 0.5}, True),
        ({"before": 60, "share": 0.0}, False),
        ({"before": 60, "arguments": {"x-dead-letter-exchange": "retry"}}, False),
        ({"before": 60, "arguments": {"x-message-ttl": 5000}}, False),
        ({"before": 0}, False),
    ],
    ids=["young", "slow", "healthy", "retried", "expires", "too little"],
)
def test_an_observation_goes_on_where_a_queue_misses_messages_since_its_beginning(fields, goes_on):
    """A few more are enough then; a setting by which messages leave explains them."""
    window = film(lambda t: rejecting(t, **fields), until=6, every=6)

    assert goes_on == may_be_losing(window, window.latest.taken, NOTHING)


def test_an_observation_goes_on_where_an_early_finding_is_about_a_loss():
    """Dead letters without a route: a few messages that are missing decide it."""
    arguments = {"x-dead-letter-exchange": "gone"}
    windows = [
        film(lambda t, s=share: rejecting(t, before=60, arguments=arguments, share=s), until=6, every=6)
        for share in (0.2, 0.0)
    ]
    early = Finding(
        rule="dlx-missing",
        severity=Severity.INFO,
        subject=Subject(kind="exchange", name="gone", vhost="/"),
        if_it_lasts=Severity.WARNING,
        involved=Involved(queues=(QueueRef("/", "bills"),)),
    )
    result = replace(NOTHING, findings=(early,))

    assert [True, False] == [may_be_losing(each, each.latest.taken, result) for each in windows]
