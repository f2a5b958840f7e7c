import pytest

from tests.unit.diagnosis.probing.heard import heard, of, one, outcome, step, took

RULE = "probe-path-slow"


def shaken(tcp, **fields):
    """Return a handshake whose connect takes this long, and a slightly longer round trip."""
    return (
        outcome("handshake", queue="", steps={"tcp": step(tcp)}, **fields),
        outcome("rtt", steps={"declare": step(tcp + 0.001)}),
    )


@pytest.mark.parametrize(("tcp", "severity"), [(0.03, "info"), (0.25, "warning")])
def test_a_connect_that_takes_long_is_the_way_there(tcp, severity):
    """RabbitMQ is not involved in a TCP connect."""
    assert [(severity, "handshake")] == of(RULE, heard(*shaken(tcp)))


def test_the_cause_gives_the_broker_its_share():
    """The broker's share is the rest of the round trip."""
    finding = one(RULE, heard(*shaken(0.25)))

    assert (0.25, 0.001) == (finding.facts["connect_seconds"], round(finding.facts["broker_seconds"], 6))


def test_a_busy_broker_answers_connects_at_once():
    """The kernel answers them."""
    slow = outcome("rtt", steps={"declare": step(0.4)})

    assert [] == of(RULE, heard(outcome("handshake", steps={"tcp": step(0.0002), "open": step(0.3)}), slow))


def test_figures_of_a_probe_that_was_late_itself_are_no_ground():
    """Outcomes of an ended probe process are ignored too."""
    assert [] == of(RULE, heard(*shaken(0.25, loop_lag=took(0.2))))
    assert [("warning", "handshake")] == of(RULE, heard(*shaken(0.25, loop_lag=took(0.02))))
    assert [] == of(RULE, heard(*shaken(0.25, at=0.0)))
    assert [] == of(RULE, heard())


def test_a_node_is_named():
    """The finding names a node if the probe measures a single node."""
    assert ("rabbit@two",) == one(RULE, heard(*shaken(0.25, node="rabbit@two"))).involved.nodes
