import pytest

from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, film, look, queue, stats
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "restart-loss"
AT = 40.0
"""The second at which the node is started again."""


def restarted(t, *, had=300, left=100, persistent=100, acked=0.0, uptime=True, name="orders", **fields):
    """A queue with messages whose node is restarted at second 40."""
    over = t >= AT
    gone = int(acked * min(t, AT))
    ready = left if over else had - gone
    counters = stats() if over else stats(publish=had, deliver=gone, ack=gone)
    queues = (queue(name, messages_ready=ready, stats=counters, messages_persistent=persistent, **fields),)
    node = Node(name=NODE, running=True, uptime_seconds=(t - AT) if over and uptime else 1000.0 + t)
    return {
        # A node that has just started lists no queues yet.
        **frame(*(() if over and t < AT + 5 else queues)),
        "nodes": (node,),
    }


def shot(until=80, **fields):
    """The result for that queue after this many seconds."""
    return look(film(lambda t: restarted(t, **fields), until=until))


def test_transient_messages_that_a_restart_took_are_counted():
    """200 of 300 were transient."""
    result = shot(name="a.b1")

    assert [("warning", "a.b1")] == of(RULE, result)
    facts = one(RULE, result).facts
    assert (200, 0, 300, 100, 200, True) == tuple(
        facts[key] for key in ("lost", "error", "before", "after", "transient", "all_transient")
    )


def test_where_the_broker_does_not_count_them_it_is_likely():
    """Other versions and types do not report persistent messages."""
    finding = one(RULE, shot(persistent=None))

    assert ("likely", None) == (finding.certainty.value, finding.facts["transient"])


@pytest.mark.parametrize(
    "fields",
    [
        {"left": 300},
        {"left": 296},
        {"uptime": False, "left": 300},
        {"durable": False},
        {"exclusive": True},
        {"acked": 5.0, "left": 80},
        {"until": 45},
    ],
    ids=["all recovered", "four", "no restart", "transient queue", "private", "consumers took them", "too early"],
)
def test_what_only_resembles_it_is_no_finding(fields):
    """Each differs in one thing."""
    assert [] == of(RULE, shot(**fields))
