"""maxlen-drop-head at high rates, where the delay between counters explains a small share of loss for minutes."""

import pytest

from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "maxlen-drop-head"


def busy(t, *, came=220.0, acked=200.0, limit=500, full_at=0.0, level=None, late=3.0, ends=1e9, **fields):
    """A queue that is full from second `full_at` on; acknowledgements are counted `late` seconds late, in turn."""
    seen = min(t, ends)
    behind = late * ((t // 5) % 2)
    published, done = int(2000 + came * seen), int(1500 + acked * max(0.0, seen - behind))
    ready = level if level is not None else limit - 1 - int(t) % 9 if t >= full_at else int(limit * 0.4)
    return queue(
        "clicks",
        **{
            "messages": ready + 50,
            "messages_ready": ready,
            "messages_unacked": 50,
            "consumers": 1,
            "arguments": {"x-max-length": limit},
            "stats": stats(publish=published, deliver=done + 50, ack=done),
            **fields,
        },
    )


def shot(until, **fields):
    """The result for that queue after this many seconds."""
    return look(film(lambda t: frame(busy(t, **fields)), until=until))


@pytest.mark.parametrize(("came", "acked", "limit"), [(220.0, 200.0, 500), (900.0, 850.0, 5000), (60.0, 57.0, 200)])
def test_a_queue_that_stays_at_its_limit_is_likely_to_drop(came, acked, limit):
    """Information, and a warning after a minute, before the counters prove it."""
    early, late = (one(RULE, shot(until, came=came, acked=acked, limit=limit, late=0.2)) for until in (30, 70))

    assert ("info", "warning", False) == (early.severity, late.severity, late.facts["proven"])
    assert pytest.approx((came - acked) * 70, rel=0.3) == late.facts["lost"]
    assert "stays at its limit" in text(late).summary


def test_it_is_critical_when_the_counters_prove_it():
    """They do so when more is lost than the delay between them can explain."""
    finding = one(RULE, shot(400))

    assert ("critical", True) == (finding.severity, finding.facts["proven"])


def test_an_explicit_drop_head_stays_a_warning():
    """It may be meant so."""
    assert "warning" == one(RULE, shot(70, arguments={"x-max-length": 500, "x-overflow": "drop-head"})).severity


@pytest.mark.parametrize(
    "fields",
    [
        {"acked": 220.0},
        {"acked": 222.0},
        {"level": 440},
        {"full_at": 60.0},
        {"ends": 20.0},
        {"arguments": {"x-max-length": 500, "x-overflow": "reject-publish"}},
        {"arguments": {"x-max-length": 500, "x-message-ttl": 9000}},
    ],
    ids=["balanced", "drains", "below its limit", "just full", "nothing comes", "refuses", "expires"],
)
def test_other_queues_are_not_reported(fields):
    """They lose nothing, or by another cause."""
    assert [] == of(RULE, shot(70, **fields))
