import pytest

from tests.unit.diagnosis.cluster.scenes import ALL, ONE, TWO, finding_of, nodes, replicated, reported
from tests.unit.diagnosis.pictures import evidence, film, look, queue, stats

RULE = "leader-imbalance"


def led(t, count=12, elsewhere=2, rate=5, **fields):
    """Quorum queues in use, most of them led by the first node."""
    numbers = stats(publish=int(rate * t), deliver_get=int(rate * t), ack=int(rate * t), deliver=int(rate * t))
    queues = [
        replicated(f"q{number:02}", leader=TWO if number < elsewhere else ONE, stats=numbers, **fields)
        for number in range(count)
    ]
    return {"nodes": nodes(), "queues": tuple(queues)}


def test_a_node_that_leads_most_and_carries_most_traffic_is_reported():
    """It is information: nothing is broken."""
    frame = lambda t: {**led(t), "nodes": nodes(run_queue=7)}  # noqa: E731  a film in a line
    finding = finding_of(look(film(frame, until=30)), RULE)

    assert ("info", "node", ONE) == (finding.severity, finding.subject.kind, finding.subject.name)
    assert (10, 12) == (finding.facts["leaders"], finding.facts["queues"])
    assert 7 == evidence(finding, "run_queue").value
    assert 0.833 == pytest.approx(evidence(finding, "traffic").value, abs=0.001)


@pytest.mark.parametrize(
    "change",
    [{"elsewhere": 6}, {"count": 9}, {"rate": 0}],
    ids=["balanced", "few queues", "no traffic"],
)
def test_a_harmless_distribution_is_not_reported(change):
    """Half and half, a few queues, or unused queues."""
    assert [] == reported(look(film(lambda t: led(t, **change), until=30)), RULE)


def test_classic_queues_do_not_count():
    """Their leader cannot move."""

    def frame(t):
        numbers = stats(publish=int(5 * t), ack=int(5 * t))
        return {"nodes": nodes(), "queues": tuple(queue(f"c{n}", node=ONE, stats=numbers) for n in range(20))}

    assert [] == reported(look(film(frame, until=30)), RULE)


def test_two_nodes_have_little_to_balance():
    """One of two leads more in any case."""
    window = film(lambda t: {**led(t, members=ALL[:2], online=ALL[:2]), "nodes": nodes()[:2]}, until=30)

    assert [] == reported(look(window), RULE)
