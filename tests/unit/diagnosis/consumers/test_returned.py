"""Which ready messages may have been returned: a backlog hides no rejects, and accuses no consumer that requeues."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.findings import flat
from diagnosis.ledger import ledger
from diagnosis.rules.consumers._shared.returned import returned
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.consumers.results import found
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats
from tests.unit.diagnosis.queue_model import QueueModel

RULE = "reject-loss"


def story_of(steps, *, most, phases, rejects=0):
    """Yield a model and the view of it, each 10 s; a consumer with a prefetch settles its messages, a step a second."""
    model, shown = QueueModel(phases=phases), {}
    for at, step in enumerate(steps):
        for name, number in step:
            getattr(model, name)(min(number, most - model.unacked) if name == "deliver" else number)
        model.reject(rejects)
        model.refresh(float(at))
        shown[at] = {"queues": (model.read(),), "consumers": (consumer(prefetch_count=most),)}
        if at and at % 10 == 0:
            window = film(lambda t: shown[int(t)], until=at)
            yield model, View(window, (), window.latest.taken, Thresholds())


settling = st.tuples(st.sampled_from(["publish", "deliver", "ack", "requeue"]), st.integers(0, 40))
steps = st.lists(st.lists(settling, max_size=4), min_size=30, max_size=70)
late = st.tuples(*[st.floats(0.0, 5.0)] * 3)


@given(steps=steps, phases=late, most=st.sampled_from([1, 5, 30]))
def test_what_is_returned_is_never_taken_for_rejected(steps, phases, most):
    """Publishes, deliveries, returns and acknowledgements in any order, with any delay of the statistics."""
    for _, view in story_of([[("publish", 60)], *steps], most=most, phases=phases):
        (now,) = view.queues
        history = view.history(now)
        balance = ledger(history, most, returned=returned(view, now, history))
        assert balance is None or 0 == balance.proven_discarded


@given(phases=late, rejects=st.integers(1, 5), acks=st.integers(0, 5))
def test_whatever_the_backlog_rejected_messages_are_proven(phases, rejects, acks):
    """More and more messages wait; each second some are acknowledged, and some rejected."""
    steps = [[("publish", 2 * (rejects + acks)), ("deliver", rejects + acks), ("ack", acks)]] * 100
    *_, (model, view) = story_of(steps, most=10, phases=phases, rejects=rejects)
    (now,) = view.queues
    balance = ledger(view.history(now), 10, returned=returned(view, now, view.history(now)))

    assert balance.proven_discarded >= 0.5 * rejects * 95 - 20
    assert balance.proven_discarded <= model.lost["discarded"]


def slow(t, *, name="claims", rejected=1.0, acked=4.0, grows=2.0, again=0.0, prefetch=10, waits=0, **of):
    """A consumer that takes less than is published, and rejects or requeues a part."""
    settled, back, ready = int((rejected + acked) * t), int(again * t), waits + int(grows * t)
    counters = stats(
        publish=settled + prefetch + ready, deliver=settled + prefetch + back, ack=int(acked * t), redeliver=back
    )
    return {
        "queues": (queue(name, messages_ready=ready, messages_unacked=prefetch, stats=counters, **of),),
        "consumers": (consumer(name, prefetch_count=prefetch),),
        "channels": (channel(messages_unacked=prefetch, stats=counters),),
        "connections": (connection(),),
    }


def of_rule(result):
    """Severities of this rule."""
    return [severity for rule, severity, _ in found(result) if rule == RULE]


@pytest.mark.parametrize(
    ("kind", "rejected", "acked", "waits", "prefetch"),
    [
        ("classic", 1.1, 3.9, 0, 10),
        ("classic", 0.8, 40.0, 90_000, 20),
        ("classic", 12.0, 0.0, 500, 1),
        ("quorum", 2.0, 6.0, 3000, 25),
    ],
)
def test_a_backlog_hides_no_rejects(kind, rejected, acked, waits, prefetch):
    """Far more messages wait than were rejected."""
    limit = {"delivery_limit": 20} if kind == "quorum" else {}

    def at(t):
        return slow(t, rejected=rejected, acked=acked, waits=waits, prefetch=prefetch, type=kind, name="q.7", **limit)

    (finding,) = [each for each in flat(look(film(at, until=90)).findings) if each.rule == RULE]

    assert "q.7" == finding.subject.name
    assert 0.4 * rejected * 90 - 2 * prefetch <= finding.facts["lost"] - finding.facts["error"] <= rejected * 90


@pytest.mark.parametrize(
    "fields",
    [
        {"rejected": 0.0},
        {"rejected": 0.0, "again": 3.0},
        {"type": "quorum"},
        {"arguments": {"x-max-priority": 5}},
        {"arguments": {"x-max-length": 1_000_000}},
        {"arguments": {"x-message-ttl": 3_600_000}},
        {"type": "quorum", "delivery_limit": 20, "arguments": {"x-delayed-retry-type": "all"}},
    ],
    ids=["acknowledges", "requeues", "no delivery limit", "priorities", "length limit", "TTL", "delayed retries"],
)
def test_where_a_returned_message_may_wait_or_vanish_a_backlog_proves_nothing(fields):
    """With a backlog that is longer than what is missing."""
    made = {"waits": 5000, "rejected": 1.0, **fields}

    assert [] == of_rule(look(film(lambda t: {**slow(t, **made), "channels": ()}, until=90)))


def test_a_batch_that_a_consumer_returned_last_is_no_loss():
    """It ended with all that it held; nothing was delivered since."""

    def at(t):
        before = slow(min(t, 60), rejected=0.0, prefetch=50, waits=800)
        if t <= 60:
            return before
        (held,) = before["queues"]
        back = queue(held.name, messages_ready=held.messages_ready + 50, messages_unacked=0, stats=held.stats)
        return {**before, "queues": (back,), "channels": (channel(messages_unacked=0),)}

    assert [] == of_rule(look(film(at, until=75)))
