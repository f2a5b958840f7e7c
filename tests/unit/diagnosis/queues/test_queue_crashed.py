import pytest

from tests.unit.diagnosis.pictures import film, look, queue, told
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "queue-crashed"


def shot(until, state="crashed", **fields):
    """The verdict after so many seconds."""
    return look(film(lambda _: frame(queue(state=state, messages_ready=5, consumers=0, **fields)), until=until))


def test_it_is_told_at_once_and_critical_when_it_stays():
    """Between two attempts to start it again it is crashed for a moment."""
    assert [("warning", "orders")] == of(RULE, shot(5))
    assert [("critical", "orders")] == of(RULE, shot(15))


def test_the_log_comes_before_the_restart():
    """And the restart is that of its virtual host."""
    finding = one(RULE, shot(15))

    assert "read the error first" in finding.next_steps[0]
    assert "rabbitmqctl restart_vhost -p /" in told(finding)
    assert "it held 5 messages" in finding.summary


@pytest.mark.parametrize("state", ["running", "stopped", "down", "flow", "idle", None])
def test_other_states_are_other_causes(state):
    """Or none."""
    assert [] == of(RULE, shot(60, state=state))


def test_no_consumer_is_what_follows():
    """One cause, one finding."""
    assert [RULE] == [finding.rule for finding in shot(700).findings]
