import pytest

from ackscope.findings import QueueRef
from ackscope.snapshot import Part
from ackscope.topology import Link
from tests.unit.diagnosis.cluster.scenes import ONE, finding_of, reported
from tests.unit.diagnosis.pictures import connection, consumer, film, look, moment, queue, stats, text

RULE = "link-down"


def shovel(state="terminated", **fields):
    """A shovel to the warehouse."""
    defaults = {"name": "to-warehouse", "vhost": "/", "node": ONE, "destination": "amqp://warehouse"}
    return Link(kind="shovel", state=state, **{**defaults, **fields})


def federated(local, state="error", **fields):
    """A link of an exchange to its upstream."""
    return Link(
        kind="federation", name="head-office", upstream="head-office", vhost="/", local=local, state=state, **fields
    )


def test_a_shovel_that_ended_is_reported_at_once_and_a_warning_after_a_minute():
    """With the broker's reason."""
    frame = {"links": (shovel(reason="econnrefused"),)}
    finding = finding_of(look(film(lambda _: frame, until=0)), RULE)

    assert ("info", "link", "to-warehouse") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert ("terminated", "econnrefused") == (finding.facts["state"], finding.facts["reason"])
    assert [("warning", "link", "to-warehouse")] == reported(look(film(lambda _: frame, until=60)), RULE)


@pytest.mark.parametrize(("until", "expected"), [(10, 0), (20, 1)])
def test_a_link_that_starts_is_given_time(until, expected):
    """It starts for some seconds after each change."""
    assert expected == len(reported(look(film(lambda _: {"links": (shovel("starting"),)}, until=until)), RULE))


@pytest.mark.parametrize("state", ["running", "flow", None])
def test_a_link_that_transfers_messages_or_reports_no_state_is_not_reported(state):
    """In flow it is slower, and transfers them."""
    assert [] == reported(look(film(lambda _: {"links": (shovel(state),)}, until=90)), RULE)


def test_a_blocked_shovel_is_the_other_brokers_alarm():
    """The alarm is not one of the polled broker."""
    finding = finding_of(look(film(lambda _: {"links": (shovel("blocked"),)}, until=30)), RULE)

    assert "memory or disk alarm" in text(finding).cause


def test_links_to_one_upstream_are_one_finding():
    """They fail for the same reason."""
    links = (*(federated(f"x{number}") for number in range(20)), federated("well", state="running"))
    result = look(film(lambda _: {"links": links}, until=90))

    assert [("warning", "link", "head-office")] == reported(result, RULE)
    finding = finding_of(result, RULE)
    assert ("federation", "head-office") == (finding.facts["kind"], finding.facts["remote"])
    assert sorted(f"x{number}" for number in range(20)) == finding.facts["serves"]


def test_a_shovel_that_is_restarted_again_and_again_does_not_run():
    """It runs for a moment each time; its source is known from then."""

    def frame(t):
        runs = t % 20 == 0
        there = shovel("running", source_queue="ship") if runs else shovel(reason="needed a restart")
        return {"links": (there,)}

    for until in (80, 85, 90):
        result = look(film(frame, until=until))
        assert [("warning", "link", "to-warehouse")] == reported(result, RULE)
        assert [QueueRef("/", "ship")] == list(finding_of(result, RULE).involved.queues)


def test_the_source_of_a_shovel_is_known_by_its_connection():
    """A shovel that has ended does not show its queue."""

    def frame(t):
        name = "10.0.0.1:40001 -> 10.0.0.1:5672"
        client = (connection(name, client_name="Shovel to-warehouse"),) if t == 70 else ()
        taker = (consumer("ship", connection_name=name),) if t == 70 else ()
        return {"links": (shovel(reason="needed a restart"),), "connections": client, "consumers": taker}

    assert (QueueRef("/", "ship"),) == finding_of(look(film(frame, until=80)), RULE).involved.queues


def test_a_shovel_that_was_restarted_once_runs():
    """A restart by an operator is over after one reading."""
    states = lambda t: {"links": (shovel("terminated" if t == 60 else "running"),)}  # noqa: E731

    assert [] == reported(look(film(states, until=65)), RULE)


NOT_FOUND = "NOT_FOUND - no exchange 'hq' in vhost '/'"


def restarting(t, *, clients=(), vhost="/"):
    """A shovel whose target does not exist, and its source: consumed for a moment, and redelivered each time."""
    times = int(12 * t)
    counters = stats(publish=300, deliver=300 + times, deliver_get=300 + times, redeliver=times)
    reason = NOT_FOUND if t % 20 == 0 else "needed a restart"
    return {
        "links": (shovel(reason=reason),),
        "queues": (queue("ship", vhost=vhost, messages_ready=300, consumers=0, stats=counters),),
        "consumers": clients,
    }


def test_the_error_of_the_target_is_the_reason_and_the_loop_at_the_source_its_consequence():
    """Most readings say only that it was restarted."""
    verdict = look(film(restarting, until=85))
    finding = finding_of(verdict, RULE)

    assert NOT_FOUND == finding.facts["reason"]
    assert {"requeue-loop"} <= {each.rule for each in finding.consequences}


def test_a_loop_in_another_vhost_is_not_its_consequence():
    """The source of a shovel is usually in its own."""
    verdict = look(film(lambda t: restarting(t, vhost="apart"), until=85))

    assert "requeue-loop" not in [each.rule for each in finding_of(verdict, RULE).consequences]


def kept(t, *, broke=-300.0, served=200, taken=0.0, reason="econnrefused"):
    """A look from second 0 on at a link that fails, and what the broker sampled of its queue before."""
    rising = int(300 + 2 * t)
    gone = served + int(taken * t) + (int(2 * (broke - t)) if t < broke else 0)
    counters = stats(publish=served + rising, deliver_get=gone or None)
    waiting = queue("ship", messages_ready=rising, consumers=0 if t >= broke else None, stats=counters)
    past = {} if t >= 0 else {"links": Part(), "connections": Part(), "consumers": Part()}
    return {"queues": (waiting,), "links": (shovel(reason=reason, source_queue="ship"),), **past}


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({}, "warning"),
        ({"broke": -70.0}, "warning"),
        ({"broke": -20.0}, "info"),
        ({"served": 0}, "info"),
        ({"taken": 1.0}, "info"),
    ],
    ids=["minutes ago", "a minute ago", "just now", "never served", "served by polls"],
)
def test_one_look_knows_since_when_a_link_takes_nothing_from_its_queue(fields, severity):
    """By the samples of the broker; a queue that waited before there was a link proves nothing."""
    finding = finding_of(look(film(lambda t: kept(t, **fields), start=-400, until=5)), RULE)

    assert severity == finding.severity
    expected = 5.0 - fields.get("broke", -300.0) if severity == "warning" else finding.facts["held_seconds"]
    assert expected == pytest.approx(finding.facts["held_seconds"], abs=70)


def test_the_beginning_is_that_of_the_standstill():
    """It was before the look."""
    finding = finding_of(look(film(kept, start=-400, until=5)), RULE)

    assert finding.since < moment(-200).iso()
    assert "none taken for" in text(finding).summary
