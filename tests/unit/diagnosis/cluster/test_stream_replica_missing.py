from tests.unit.diagnosis.cluster.scenes import ALL, ONE, THREE, TWO, cause_of, nodes, replicated, reported
from tests.unit.diagnosis.pictures import film, look, queue, stats

RULE = "stream-replica-missing"


def stream(**fields):
    """A stream with three replicas."""
    return replicated("events", type="stream", **fields)


def test_a_missing_replica_is_a_finding_about_its_node():
    """It is information first, and a warning if it stays away."""

    def frame(t):
        return {"nodes": nodes(), "queues": (stream(online=ALL if t < 20 else (ONE, TWO)),)}

    assert [] == reported(look(film(frame, until=25)), RULE)
    assert [("info", "node", THREE)] == reported(look(film(frame, until=40)), RULE)
    assert [("warning", "node", THREE)] == reported(look(film(frame, until=400)), RULE)


def test_a_node_that_is_down_is_the_cause():
    """Although the stream still reports its replica as online."""

    def frame(t):
        online = ALL if t < 40 else (ONE, TWO)
        return {"nodes": nodes(THREE) if t >= 20 else nodes(), "queues": (stream(online=online),)}

    assert "node-down" == cause_of(look(film(frame, until=60)), RULE)


def test_without_a_majority_nothing_is_confirmed():
    """Critical at once, by the state that the broker reports."""
    window = film(lambda _: {"nodes": nodes(), "queues": (stream(state="minority", online=(ONE, TWO)),)}, until=0)

    assert [("critical", "queue", "events")] == reported(look(window), RULE)


def test_quorum_queues_have_rules_of_their_own():
    """They are no streams."""
    window = film(lambda _: {"nodes": nodes(), "queues": (replicated(state="minority", online=(ONE,)),)}, until=30)

    assert [] == reported(look(window), RULE)


def test_only_a_lost_majority_explains_that_clients_get_nothing():
    """A stream that works is not the cause of another queue without consumers."""

    def frame(t):
        lonely = queue("lonely", consumers=0, messages_ready=int(5 + t), stats=stats(publish=int(5 + t)))
        away = {"state": "running", "online": (ONE, TWO)}
        return {"nodes": nodes(), "queues": (stream(**away), lonely)}

    result = look(film(frame, until=400))

    assert [("warning", "node", THREE)] == reported(result, RULE)
    assert "no-consumer" in {finding.rule for finding in result.findings}
