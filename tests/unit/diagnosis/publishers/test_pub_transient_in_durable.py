import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, text
from tests.unit.diagnosis.publishers.films import findings, of, publisher

RULE = "pub-transient-in-durable"


def waiting(_t, *, ready=50, persistent=10, **fields):
    """A durable queue in which most messages are not persistent."""
    return {"queues": (queue(messages_ready=ready, messages=ready, messages_persistent=persistent, **fields),)}


def test_messages_that_a_restart_would_lose_are_one_finding_for_each_vhost():
    """A risk, with their number."""

    def frame(t):
        many = tuple(waiting(t, name=f"orders-{number}")["queues"][0] for number in range(5))
        return {"queues": many}

    verdict = look(film(frame, until=30))

    assert [("info", "vhost", "/")] == of(verdict, RULE)
    finding = findings(verdict, RULE)[0]
    assert (200, 5) == (finding.facts["transient"], len(finding.facts["queues"]))
    assert [(40, 50)] * 5 == [(item.value, item.facts["messages"]) for item in finding.evidence]


@pytest.mark.parametrize(
    "change",
    [
        {"persistent": 50},
        {"persistent": 46},
        {"ready": 8, "persistent": 0},
        {"persistent": None},
        {"type": "quorum", "persistent": 0},
        {"type": "stream", "persistent": 0},
        {"durable": False},
        {"exclusive": True},
        {"durable": None},
    ],
    ids=["all persistent", "a few", "a handful", "no figures", "quorum", "stream", "transient", "exclusive", "unknown"],
)
def test_other_queues_are_not_reported(change):
    """Messages that survive, that need not survive, and queues without figures."""
    assert [] == of(look(film(lambda t: waiting(t, **change), until=60)), RULE)


def test_a_burst_that_is_consumed_is_not_reported():
    """Seen in one reading only."""
    assert [] == of(look(film(lambda t: waiting(t) if t >= 30 else waiting(t, ready=0, persistent=0), until=30)), RULE)


def test_two_snapshots_are_enough():
    """Six seconds apart."""
    verdict = look(film(waiting, until=6, every=6), thresholds=Thresholds.as_if_lasting())

    assert [("info", "vhost", "/")] == of(verdict, RULE)


@pytest.mark.parametrize(
    ("modes", "said"),
    [((True,), True), ((False,), False), ((True, False), False), ((None,), False), ((), False)],
    ids=["with confirms", "without", "some", "unknown", "no publisher"],
)
def test_confirms_are_claimed_only_where_all_publishers_use_them(modes, said):
    """By the channels of the same virtual host; a publisher of another one does not count."""

    def frame(t):
        sending = [publisher(t, peer=f"10.0.3.{number}:1 -> x", confirm=mode) for number, mode in enumerate(modes)]
        elsewhere = publisher(t, peer="10.0.4.1:1 -> x", confirm=not said, vhost="other")
        return {**waiting(t), "channels": (*sending, elsewhere)}

    finding = findings(look(film(frame, until=30)), RULE)[0]

    assert said is finding.facts["confirmed"]
    assert said == ("confirmed" in text(finding).summary)
