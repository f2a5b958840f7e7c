from dataclasses import replace

import pytest

from ackscope.topology import Policy
from tests.unit.diagnosis.pictures import film, look, text
from tests.unit.diagnosis.queues.films import flowing, frame, of

RULE = "policy-limit-loss"
SHORT = Policy(vhost="/", name="keep-short", pattern=".*", definition={"max-length": 10})


def dropping(t, name, rate=8.0, **fields):
    """A queue at the limit of its policy."""
    limited = {"arguments": {}, "policy": "keep-short", "effective_policy": {"max-length": 10}}
    return flowing(t, name=name, **{"published": rate, "acked": 0.5, "ready": 10, "unacked": 1, **limited, **fields})


def seen(*queues, policy=SHORT, until=100):
    """The result for some queues: functions of the second."""
    return look(film(lambda t: {**frame(*(each(t) for each in queues)), "policies": (policy,)}, until=until))


def test_queues_of_one_policy_that_drop_messages_are_one_finding():
    """With the loss of all of them, and what to do with the policy."""
    names = {"invoices": 8.0, "mails": 3.0, "audit": 20.0}
    verdict = seen(*(lambda t, name=name, rate=rate: dropping(t, name, rate) for name, rate in names.items()))

    (finding,) = [each for each in verdict.findings if each.rule == RULE]
    assert ("critical", "policy", "keep-short") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert {"maxlen-drop-head"} <= {each.rule for each in finding.consequences}
    assert 3 == finding.facts["queue_count"]
    assert finding.facts["lost"] == sum(each["lost"] for each in finding.facts["queues"])
    assert {RULE} == {each.rule for each in verdict.findings if each.severity == "critical"}
    assert "pattern '.*'" in text(finding).summary
    assert "rabbitmqctl clear_policy -p / keep-short" in [step.command for step in text(finding).steps]


@pytest.mark.parametrize(
    ("other", "policy"),
    [
        (lambda t: flowing(t, name="calm"), SHORT),
        (lambda t: dropping(t, "own", arguments={"x-max-length": 10}), SHORT),
        (lambda t: dropping(t, "other", policy="another"), SHORT),
        (lambda t: dropping(t, "mails"), Policy(vhost="/", name="keep-short", definition={"expires": 60_000})),
        (lambda t: dropping(t, "mails"), replace(SHORT, operator=True)),
    ],
    ids=[
        "one queue",
        "a limit of its own",
        "two policies",
        "an operator policy limits",
        "operator policies have names",
    ],
)
def test_what_one_policy_does_not_explain_stays_a_finding_of_each_queue(other, policy):
    """The full queue is reported as before."""
    verdict = seen(lambda t: dropping(t, "invoices"), other, policy=policy)

    assert [] == of(RULE, verdict)
    assert ("critical", "invoices") in of("maxlen-drop-head", verdict)
