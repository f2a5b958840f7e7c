"""The delivery probe against real brokers: both sides of every message, and what a client loses when they part."""

import asyncio

import pytest

from ackscope.records import Outcome

pytestmark = pytest.mark.integration

BOTH = ("classic", "quorum")


def test_every_message_is_acked_and_delivered_once(lab, measure, run):
    """Both queue types: one record a message, with the time to its first delivery."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "delivery", rate=100) as seen:
            for kind in BOTH:
                await seen.until_acked(kind, 200)
        return seen

    seen = run(scenario())

    assert {Outcome.ACKED} == {record.outcome for record in seen.messages}
    assert {(1, False, False)} == {
        (record.deliveries, record.redelivered, record.out_of_order) for record in seen.messages
    }
    assert all(record.delivery > 0 and record.confirm > 0 for record in seen.messages)
    for kind in BOTH:
        outcome = seen.outcome(kind)
        assert [0, 0, 0, 0] == [outcome.missing, outcome.duplicates, outcome.redeliveries, outcome.out_of_order]
        assert outcome.delivery.p50 > 0
        assert outcome.success is True


def test_closed_connections_lose_no_confirmed_message(lab, measure, run):
    """After a reconnect, what was confirmed and not delivered still comes; nothing is matched with a wrong message."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "delivery", rate=500, queue_types=["quorum"]) as seen:
            await seen.until_acked("quorum", 200)
            await asyncio.to_thread(lab.ctl, 0, "close_all_connections", "by a test")
            await seen.until(lambda: seen.outcome("quorum").connects >= 2, "a second session")
            await seen.until_acked("quorum", seen.outcome("quorum").outcomes["acked"] + 500)
        return seen

    seen = run(scenario())
    keys = [(record.epoch, record.seq) for record in seen.messages]

    assert len(keys) == len(set(keys))
    assert all(record.delivery is not None for record in seen.messages if record.outcome is Outcome.ACKED)
    assert seen.outcome("quorum").missing == 0
    assert all(0 < record.delivery < 30 for record in seen.messages if record.delivery is not None)


def test_confirmed_messages_that_vanish_are_missing(lab_310, measure, run):
    """An operator's policy throws away what no consumer takes at once: confirmed, never delivered, and reported."""

    async def scenario():
        settings = {"rate": 500, "queue_types": ["classic"], "missing_after": 1, "prefetch": 1}
        async with measure(lab_310.nodes[0].amqp, "delivery", **settings) as seen:
            await seen.until_acked("classic", 20)
            pattern = "^" + seen.prefix.replace(".", "\\.")
            await asyncio.to_thread(lab_310.ctl, 0, "set_policy", "vanish", pattern, '{"message-ttl": 0}')
            try:
                await seen.until(lambda: seen.outcome("classic").missing > 0, "missing messages")
                during = seen.outcome("classic")
            finally:
                await asyncio.to_thread(lab_310.ctl, 0, "clear_policy", "vanish")
        return seen, during

    seen, during = run(scenario())
    missing = [record for record in seen.messages if record.deliveries == 0]

    assert during.success is False
    assert {Outcome.ACKED} == {record.outcome for record in missing}
    assert {None} == {record.delivery for record in missing}
    assert len(missing) == seen.outcome("classic").missing


def test_a_deleted_queue_ends_the_session_in_words(lab_310, measure, run):
    """The broker cancels the consumer; the probe says so and starts anew."""

    async def scenario():
        async with measure(lab_310.nodes[0].amqp, "delivery", rate=50, queue_types=["classic"]) as seen:
            await seen.until_acked("classic", 20)
            await asyncio.to_thread(lab_310.ctl, 0, "delete_queue", f"{seen.prefix}.delivery.classic")
            await seen.until(lambda: seen.outcome("classic").connects >= 2, "a new session")
            await seen.until_acked("classic", seen.outcome("classic").outcomes["acked"] + 20)
        return [outcome.reason for batch in seen.batches for outcome in batch.outcomes if outcome.reason]

    assert any("was deleted" in reason for reason in run(scenario()))
