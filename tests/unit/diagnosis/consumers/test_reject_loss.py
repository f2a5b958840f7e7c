import pytest

from ackscope.findings import flat
from ackscope.topology import Policy
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text

RULE = "reject-loss"


def rejecting(*, rejected=8.0, acked=0.0, ready=0, unacked=0, requeued=0.0, until=1e9, name="orders", on=None, **of):
    """Return a film in which consumers reject and acknowledge this many messages per second."""

    def frame(t):
        seconds = min(t, until)
        settled, again = int(rejected * seconds) + int(acked * seconds), int(requeued * seconds)
        counters = stats(
            publish=settled + ready + unacked,
            deliver=settled + unacked + again,
            ack=int(acked * seconds),
            redeliver=again,
        )
        return {
            "queues": (queue(name, messages_ready=ready, messages_unacked=unacked, stats=counters, **of),),
            "consumers": (consumer(name, **(on or {})),),
            "channels": (channel(messages_unacked=unacked, stats=counters),),
            "connections": (connection(),),
        }

    return frame


def of_rule(result):
    """Findings of this rule."""
    return [(severity, name) for rule, severity, name in found(result) if rule == RULE]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("prefetch", [1, 10, 0])
@pytest.mark.parametrize(("rejected", "acked"), [(0.5, 0.0), (8.0, 0.0), (3.0, 9.0), (300.0, 300.0)])
def test_whatever_is_rejected_is_counted_as_lost(kind, prefetch, rejected, acked):
    """Names, types, rates and prefetch do not matter."""
    frame = rejecting(rejected=rejected, acked=acked, name="a.b1", type=kind, on={"prefetch_count": prefetch})

    assert [("critical", "a.b1")] == of_rule(look(film(frame, until=90)))


def test_it_is_seen_within_seconds():
    """Consumers with a prefetch can have only a few messages in flight."""
    assert [("critical", "orders")] == of_rule(look(film(rejecting(), until=10)))


def test_two_readings_show_it():
    """As `ackscope diagnose` takes them."""
    window = film(rejecting(), until=8, every=8)

    assert [("critical", "orders")] == of_rule(look(window, thresholds=Thresholds.as_if_lasting()))


def test_the_finding_counts_and_names_who_rejects():
    """All that was delivered."""
    finding = only(look(film(rejecting(), until=60)))

    assert (480, 480, 0) == tuple(finding.facts[key] for key in ("lost", "delivered", "acked"))
    assert ["billing"] == finding.facts["clients"]
    assert ("billing",) == finding.involved.clients
    assert finding.accounted is None
    assert "dead-letters" in (text(finding).steps[1].command or "")


def test_a_small_share_is_no_alarm():
    """One in fifty is a warning, fewer than one in a hundred are information."""
    assert [("warning", "orders")] == of_rule(look(film(rejecting(rejected=1.0, acked=49.0), until=120)))
    assert [("info", "orders")] == of_rule(look(film(rejecting(rejected=0.3, acked=49.7), until=300)))


def test_after_it_has_stopped_it_is_a_warning():
    """What was lost is lost."""
    assert [("warning", "orders")] == of_rule(look(film(rejecting(until=40), until=90)))


@pytest.mark.parametrize(
    "frame",
    [
        rejecting(rejected=0.0, acked=8.0),
        rejecting(rejected=0.0, acked=8.0, requeued=20.0),
        rejecting(arguments={"x-dead-letter-exchange": "dlx"}),
        rejecting(effective_policy={"dead-letter-exchange": "dlx"}, policy="dead"),
        rejecting(rejected=0.0, unacked=10),
        rejecting(rejected=0.0, ready=50),
        rejecting(type="quorum", delivery_limit=3, requeued=24.0),
        rejecting(on={"channel_name": None}),
        rejecting(rejected=0.05),
    ],
    ids=[
        "acknowledges",
        "requeues",
        "dead-letters",
        "dead-letters by policy",
        "holds",
        "backlog",
        "deleted at the delivery limit",
        "another protocol",
        "three messages",
    ],
)
def test_what_only_resembles_it_is_no_finding(frame):
    """Each differs in one thing."""
    assert [] == of_rule(look(film(frame, until=60)))


def test_a_consumer_that_ends_with_messages_loses_none():
    """They are ready again, and are delivered to the next consumer."""

    def frame(t):
        acked = int(8 * min(t, 30))
        again = 10 if t > 40 else 0
        held, ready = (10, 0) if t <= 30 or t > 40 else (0, 10)
        counters = stats(publish=acked + 10, deliver=acked + 10 + again, ack=acked, redeliver=again)
        return {"queues": (queue(messages_ready=ready, messages_unacked=held, stats=counters),)}

    for until in range(5, 90, 5):
        assert [] == of_rule(look(film(frame, until=until)))


@pytest.mark.parametrize(("limit", "version"), [(-1, "3.10.8"), (-1, "3.13.2"), (0, "4.3.6")])
def test_a_limit_that_allows_no_return_deletes_what_is_returned(limit, version):
    """The counters are those of a reject, so the setting decides; that is poison-drop's."""
    frame = rejecting(type="quorum", arguments={"x-delivery-limit": limit})
    results = found(look(film(lambda t: {**frame(t), **_version(version)}, until=60)))

    assert ("poison-drop", "critical", "orders") in results
    assert RULE not in [rule for rule, _, _ in results]


def test_from_4_0_on_a_negative_limit_is_no_limit():
    """So the messages were rejected."""
    frame = rejecting(type="quorum", arguments={"x-delivery-limit": -1})
    results = found(look(film(lambda t: {**frame(t), **_version("4.0.5")}, until=60)))

    assert (RULE, "critical", "orders") in results
    assert "poison-drop" not in [rule for rule, _, _ in results]


def _version(version):
    from ackscope.snapshot import Overview

    return {"overview": Overview(rabbitmq_version=version, statistics=True, rates_mode="basic")}


@pytest.mark.parametrize("share", [4, 1, 0.5])
def test_rejected_messages_do_not_account_for_others_that_were_never_delivered(share):
    """A consumer rejects some; as many, or fewer, leave before any delivery."""

    def frame(t):
        rejected, vanished = int(8 * t), int(8 / share * t)
        counters = stats(publish=rejected + vanished, deliver=rejected)
        return {
            "queues": (queue(stats=counters),),
            "consumers": (consumer(),),
            "channels": (channel(stats=counters),),
            "connections": (connection(),),
        }

    assert {RULE, "unexplained-loss"} <= {each.rule for each in flat(look(film(frame, until=90)).findings)}


@pytest.mark.parametrize("until", [30, 60, 120, 200, 400])
@pytest.mark.parametrize("lengths", [0, None], ids=["empty", "not reported yet"])
def test_a_short_loss_of_a_new_queue_stays_named(until, lengths):
    """Older readings are thinned, until the whole loss lies between the first two of them."""

    def frame(t):
        rejected = int(10 * min(8.0, max(0.0, t - 12)))
        counters = stats(publish=rejected, deliver=rejected) if t >= 5 else stats()
        length = 0 if t >= 5 else lengths
        of = {"messages_ready": length, "messages_unacked": length, "messages": length}
        return {"queues": (queue("a.b1", stats=counters, **of),), "consumers": (consumer("a.b1"),)}

    losses = [each for each in flat(look(film(frame, until=until)).findings) if each.rule == RULE]

    assert [80] == [each.facts["lost"] for each in losses]


def test_what_a_cancelled_consumer_holds_of_a_new_queue_is_not_lost():
    """It took its prefetch of 20 and cancelled; the length of the queue is older than the counters of the channels."""

    def frame(t):
        if t < 10:
            return {"queues": (), "consumers": (), "channels": (), "connections": (connection(),)}
        held = 0 if t < 20 else 20
        acked = int(5 * (t - 5))
        counters = stats(publish=acked + 20, deliver=acked + 20, ack=acked)
        return {
            "queues": (queue(messages_ready=0, messages_unacked=held, stats=counters),),
            "consumers": (consumer(prefetch_count=5),),
            "channels": (channel(stats=stats(deliver=acked, ack=acked)),),
            "connections": (connection(),),
        }

    for until in range(10, 61, 5):
        assert [] == of_rule(look(film(frame, until=until)))


KEEPS, LAZY = {"dead-letter-exchange": "payments.dlx"}, {"queue-mode": "lazy"}


def with_policies(*policies, in_force="lazy", definition=LAZY):
    """A queue that loses what is rejected, with these policies in its virtual host."""
    frame = rejecting(policy=in_force, effective_policy=definition)
    return lambda t: {**frame(t), "policies": policies}


def policy(name, definition, priority, pattern="^ord", **fields):
    """A policy for queues."""
    return Policy(
        vhost="/", name=name, pattern=pattern, apply_to="queues", priority=priority, definition=definition, **fields
    )


def test_a_policy_that_would_keep_rejected_messages_is_named_if_another_one_is_in_force():
    """Only one policy applies to a queue. The first step joins both for this queue."""
    frame = with_policies(policy("dlx", KEEPS, 0), policy("lazy", LAZY, 5))
    words = text(only(look(film(frame, until=60))))

    assert "Policy 'dlx' would dead-letter them" in words.cause
    assert "policy 'lazy' is in force" in words.cause
    assert '{"dead-letter-exchange": "payments.dlx", "queue-mode": "lazy"}' in (words.steps[0].command or "")


@pytest.mark.parametrize(
    "others",
    [
        (policy("lazy", LAZY, 5),),
        (policy("lazy", LAZY, 5), policy("dlx", KEEPS, 0, pattern="^mail")),
        (policy("lazy", LAZY, 5), policy("ttl", {"message-ttl": 9}, 0)),
    ],
    ids=["the only one", "for other queues", "another setting"],
)
def test_other_policies_have_nothing_to_do_with_it(others):
    """None of them would keep what is rejected."""
    assert only(look(film(with_policies(*others), until=60))).facts["shadowed"] is None
