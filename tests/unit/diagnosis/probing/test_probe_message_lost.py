import pytest

from diagnosis.text import render
from tests.unit.diagnosis.pictures import queue
from tests.unit.diagnosis.probing.heard import heard, of, one, outcome

RULE = "probe-message-lost"


def lossy(**fields):
    """A delivery stream that misses three messages."""
    return outcome("delivery", "quorum", **{"missing": 3, "success": False, "outcomes": {"acked": 100}, **fields})


def own(**fields):
    """The queue of that stream."""
    return {"queues": (queue("ackscope.probe.delivery.quorum", type="quorum", **fields),)}


def test_a_loss_that_nothing_explains_is_critical():
    """The broker confirmed these messages."""
    finding = one(RULE, heard(lossy(), parts=own()))

    assert ("critical", "delivery.quorum") == (finding.severity, finding.subject.name)
    assert (3, 100, None) == tuple(finding.facts[key] for key in ("missing", "acked", "disturbance"))


@pytest.mark.parametrize(
    ("fields", "disturbance"),
    [
        ({"consumers": 2}, {"consumers": 1}),
        ({"policy": "all", "effective_policy": {"max-length": 1}}, {"policy": "all", "limits": ["max-length 1"]}),
    ],
    ids=["another consumer", "a policy"],
)
def test_what_disturbs_the_probe_is_distinguished(fields, disturbance):
    """A disturbed probe proves nothing about the queues of applications."""
    finding = one(RULE, heard(lossy(), parts=own(**fields)))

    assert "warning" == finding.severity
    assert disturbance == finding.facts["disturbance"]


def test_a_policy_that_takes_nothing_away_explains_nothing():
    """An example is a policy that only names a dead-letter exchange."""
    assert [("critical", "delivery.quorum")] == of(RULE, heard(lossy(), parts=own(effective_policy={"ha-mode": "all"})))


@pytest.mark.parametrize("fields", [{"missing": 0}, {"missing": None}, {"success": True}, {"at": 0.0}])
def test_streams_that_miss_nothing_now_are_left_alone(fields):
    """The count starts with the probe; the last minute must have contributed to it."""
    assert [] == of(RULE, heard(lossy(**fields), parts=own()))


def test_from_a_stream_no_other_reader_takes_anything():
    """Its readers are no disturbance, and the number of its messages is no evidence; retention may explain a loss."""
    lost = outcome("streaming", "stream", queue_type="stream", missing=3, success=False, outcomes={"acked": 100})

    def read(**fields):
        own_stream = queue("ackscope.probe.streaming.stream", type="stream", consumers=2, **fields)
        return one(RULE, heard(lost, parts={"queues": (own_stream,)}))

    finding, limited = read(), read(policy="all", effective_policy={"max-age": "1s"})

    assert ("critical", "streaming.stream") == (finding.severity, finding.subject.name)
    assert ["missing"] == [each.key for each in finding.evidence]
    assert {"policy": "all", "limits": ["max-age 1s"]} == limited.facts["disturbance"]
    assert "Reading removes nothing from a stream" in render(finding).cause
