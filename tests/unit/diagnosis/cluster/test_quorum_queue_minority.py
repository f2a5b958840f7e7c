from dataclasses import replace

import pytest

from ackscope.findings import Subject
from ackscope.records import ProbeOutcome, ProbeState
from diagnosis.rules.cluster._shared.consequences import AFFECTED_QUEUES
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.cluster.scenes import ALL, ONE, THREE, TWO, cause_of, finding_of, nodes, replicated, reported
from tests.unit.diagnosis.pictures import WALL, channel, evidence, film, look, moment

RULE = "quorum-queue-minority"


def loses(at=20.0, *, state="minority", online=(ONE,), **fields):
    """A queue whose replicas disappear, while all nodes run."""

    def frame(t):
        if t < at:
            return {"nodes": nodes(), "queues": (replicated(),)}
        return {"nodes": nodes(), "queues": (replicated(state=state, online=online, **fields),)}

    return frame


def test_the_state_that_the_broker_reports_counts_at_once():
    """`minority` on 4.x."""
    assert [("critical", "queue", "orders")] == reported(look(film(loses(), until=20)), RULE)


def test_without_that_state_the_replicas_are_counted():
    """3.10 still reports running and a leader: it takes two readings."""
    frame = loses(state="running")

    assert [] == reported(look(film(frame, until=20)), RULE)
    assert [("critical", "queue", "orders")] == reported(look(film(frame, until=25)), RULE)


@pytest.mark.parametrize(
    ("members", "online", "expected"),
    [
        (ALL, (ONE, TWO), 0),
        ((ONE,), (ONE,), 0),
        ((ONE, TWO), (ONE,), 1),
        (ALL, (), 1),
        (ALL, None, 0),
        (None, None, 0),
    ],
    ids=["one away of three", "single", "one away of two", "all away", "not reported", "no members reported"],
)
def test_a_majority_is_counted(members, online, expected):
    """Absent is not missing."""
    frame = loses(0, state="running", members=members, online=online)

    assert expected == len(reported(look(film(frame, until=30)), RULE))


def test_replicas_on_stopped_nodes_are_missing_although_reported_online():
    """`online` is seconds behind."""

    def frame(t):
        return {"nodes": nodes(TWO, THREE) if t >= 20 else nodes(), "queues": (replicated(state="running"),)}

    assert [("critical", "queue", "orders")] == reported(look(film(frame, until=25)), RULE)
    assert "node-down" == cause_of(look(film(frame, until=40)), RULE)


def test_many_queues_are_one_finding():
    """Its subject is what all of them are in."""

    def frame(_):
        queues = [replicated(f"q{number}", state="minority", online=(ONE,)) for number in range(40)]
        return {"nodes": nodes(), "queues": tuple(queues)}

    result = look(film(frame, until=0))

    assert [("critical", "vhost", "/")] == reported(result, RULE)
    assert (40, 40) == (
        finding_of(result, RULE).facts["queue_count"],
        len(finding_of(result, RULE).involved.queues),
    )


def test_nodes_that_are_down_are_its_cause():
    """They are also the cause of the lost majority of the metadata store."""

    def frame(t):
        return {
            "nodes": nodes(TWO, THREE) if t >= 20 else nodes(),
            "queues": (replicated(state="minority" if t >= 20 else "running", online=(ONE,) if t >= 30 else ALL),),
        }

    result = look(film(frame, until=60))

    assert "node-down" == cause_of(result, RULE)
    assert "node-down" == cause_of(result, "metadata-minority")
    assert [] == reported(result, "quorum-queue-leaderless")


def test_it_shows_what_clients_see():
    """Our own probe, and channels that wait."""
    outcome = ProbeOutcome(
        probe="confirm", stream="quorum", queue_type="quorum", vhost="/", queue="ackscope.probe.confirm.quorum",
        node=ONE, at=WALL, state=ProbeState.RUNNING, outstanding=17,
    )  # fmt: skip

    def frame(t):
        return {**loses(0)(t), "channels": (channel(messages_unconfirmed=60, pending_raft_commands=60),)}

    finding = finding_of(look(film(frame, until=0), outcomes=(outcome,)), RULE)

    assert 17 == evidence(finding, "probe").value
    assert (60, 1) == (evidence(finding, "channels").value, evidence(finding, "channels").facts["channel_count"])
    assert {"vhost": "/", "name": "orders"} == finding.facts["first_queue"]


def test_few_queues_are_findings_of_their_own():
    """So that each is named."""

    def frame(_):
        queues = [replicated(name, state="minority", online=(ONE,)) for name in ("b", "a")]
        return {"nodes": nodes(), "queues": tuple(queues)}

    assert [("critical", "queue", "a"), ("critical", "queue", "b")] == reported(look(film(frame, until=0)), RULE)


def test_it_covers_its_queues_and_their_vhost():
    """Findings about clients that wait are about either."""
    view = View(film(loses(0), until=0), (), moment(0), Thresholds())
    minority = finding_of(look(film(loses(0), until=0)), RULE)
    covered = set(AFFECTED_QUEUES.of_cause(view, minority))

    def about(**subject):
        return set(AFFECTED_QUEUES.of_other(view, replace(minority, subject=Subject(**subject))))

    assert about(kind="queue", name="orders", vhost="/") <= covered
    assert about(kind="vhost", name="/") <= covered
    assert about(kind="channel", name="c", vhost="/") <= covered
    assert not about(kind="queue", name="bills", vhost="/") & covered
    assert not about(kind="vhost", name="elsewhere") & covered
