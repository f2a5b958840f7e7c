import pytest

from tests.unit.diagnosis.pictures import film, look, queue, text
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "queue-crashed"


def shot(until, state="crashed", **fields):
    """The result after this many seconds."""
    return look(film(lambda _: frame(queue(state=state, messages_ready=5, consumers=0, **fields)), until=until))


def test_it_is_a_warning_at_once_and_critical_if_it_stays():
    """Between two restarts it is crashed for a short time."""
    assert [("warning", "orders")] == of(RULE, shot(5))
    assert [("critical", "orders")] == of(RULE, shot(15))


def test_the_log_comes_before_the_restart():
    """And the restart is that of its virtual host."""
    finding = one(RULE, shot(15))

    commands = [step.command or "" for step in text(finding).steps]

    assert ["grep", "rabbitmqctl restart_vhost -p /"] == [commands[0].split()[0], commands[1]]
    assert 5 == finding.facts["messages"]


@pytest.mark.parametrize("state", ["running", "stopped", "down", "flow", "idle", None])
def test_other_states_are_other_causes(state):
    """Or none."""
    assert [] == of(RULE, shot(60, state=state))


def test_no_consumer_is_a_consequence():
    """One cause, one finding."""
    assert [RULE] == [finding.rule for finding in shot(700).findings]
