"""The confirm probe against real brokers: every outcome, and its way back from every trouble."""

import asyncio
import json
import secrets
import signal
import time

import pika
import pytest

from ackscope.records import BatchingKind, Outcome, ProbeState
from probes.confirm import PATHS

pytestmark = pytest.mark.integration

BOTH = ("classic", "quorum")


def test_every_message_is_acked_on_a_healthy_broker(lab, measure, run):
    """All streams: each message once, with its times and the probe's own error, and bursts that hold the same."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "confirm", rate=50, control_rate=50) as seen:
            for stream in PATHS:
                await seen.until_acked(stream, 100)
        return seen

    seen = run(scenario())

    assert {Outcome.ACKED} == {record.outcome for record in seen.messages}
    for stream, path in PATHS.items():
        records = [record for record in seen.messages if record.stream == stream]
        outcome = seen.outcome(stream)
        assert list(range(1, len(records) + 1)) == sorted(record.seq for record in records)
        assert all(record.confirm > 0 and record.response >= record.confirm for record in records)
        assert {(path.queue_type, path.delivery_mode)} == {(item.queue_type, item.delivery_mode) for item in records}
        assert {4096 if path.large else 64} == {record.payload_bytes for record in records}
        assert len(records) == outcome.outcomes["acked"]
        assert len(records) == sum(burst.messages for burst in seen.bursts if burst.stream == stream)
        assert outcome.confirm.p50 > 0
        assert outcome.send_delay.count > 0
        assert outcome.loop_lag.count > 0
        assert outcome.batching.kind is not BatchingKind.SYNC


def test_a_stall_of_the_broker_is_in_every_message_meant_for_it(lab, measure, run):
    """Stopped for two seconds at 200/s: about 400 messages carry it, as a ramp, and none is missing."""
    broker = lab.processes[0]

    async def scenario():
        async with measure(lab.nodes[0].amqp, "confirm", rate=200, streams=["classic"]) as seen:
            await seen.until_acked("classic", 200)
            broker.signal(signal.SIGSTOP)
            try:
                stopped = time.time()
                await asyncio.sleep(2)
                went_on = time.time()
            finally:
                broker.signal(signal.SIGCONT)
            await seen.until_acked("classic", 1000)
        return seen, stopped, went_on

    seen, stopped, went_on = run(scenario())
    records = sorted(seen.messages, key=lambda record: record.intended_at)
    during = [record for record in records if stopped + 0.05 < record.intended_at < went_on - 0.05]
    meant = 200 * (went_on - stopped - 0.1)

    assert {Outcome.ACKED} == {record.outcome for record in records}
    assert len(during) == pytest.approx(meant, abs=3)
    assert all(record.response >= went_on - record.intended_at - 0.02 for record in during)
    assert len([record for record in records if record.response > 0.05]) >= meant - 10
    assert list(range(1, len(records) + 1)) == sorted(record.seq for record in records)
    assert len(records) == sum(seen.outcome("classic").outcomes.values())
    assert seen.outcome("classic").response.max >= went_on - stopped - 0.1


def test_a_full_queue_that_rejects_is_seen_as_nacks(lab, measure, run):
    """An operator's policy makes the queues refuse: every further message is nacked, and counted as that."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "confirm", rate=50, streams=BOTH) as seen:
            for kind in BOTH:
                await seen.until_acked(kind, 10)
            definition = json.dumps({"max-length": 1, "overflow": "reject-publish"})
            pattern = "^" + seen.prefix.replace(".", "\\.")
            await asyncio.to_thread(lab.ctl, 0, "set_policy", "full", pattern, definition)
            try:
                for kind in BOTH:
                    await seen.until(lambda kind=kind: seen.outcome(kind).outcomes["nacked"] >= 20, f"nacks on {kind}")
                during = {kind: seen.outcome(kind) for kind in BOTH}
            finally:
                await asyncio.to_thread(lab.ctl, 0, "clear_policy", "full")
        return seen, during

    seen, during = run(scenario())

    assert {False} == {outcome.success for outcome in during.values()}
    assert all(record.confirm is not None for record in seen.messages if record.outcome is Outcome.NACKED)


def test_a_deleted_queue_is_seen_as_returns_and_made_again(lab, measure, run):
    """Messages that no queue took are returned; the probe notices and repairs its own queue."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "confirm", rate=50, streams=["classic"]) as seen:
            await seen.until_acked("classic", 10)
            await asyncio.to_thread(lab.ctl, 0, "delete_queue", f"{seen.prefix}.confirm.classic")
            await seen.until(lambda: seen.outcome("classic").outcomes["returned"] > 0, "returned messages")
            acked = seen.outcome("classic").outcomes["acked"]
            await seen.until_acked("classic", acked + 100)
        return seen

    seen = run(scenario())

    assert seen.outcome("classic").connects == 1
    assert all(record.confirm is not None for record in seen.messages if record.outcome is Outcome.RETURNED)


def test_a_closed_connection_means_lost_messages_and_a_new_epoch(lab, measure, run):
    """Tags restart with the new channel, so nothing is matched across; then the probe runs again."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "confirm", rate=2000, streams=["quorum"]) as seen:
            await seen.until_acked("quorum", 1000)
            await asyncio.to_thread(lab.ctl, 0, "close_all_connections", "by a test")
            await seen.until(lambda: seen.outcome("quorum").connects == 2, "a second connection")
            reported = [outcome.reason for batch in seen.batches for outcome in batch.outcomes if outcome.reason]
            acked = seen.outcome("quorum").outcomes["acked"]
            await seen.until_acked("quorum", acked + 500)
        return seen, reported

    seen, reported = run(scenario())
    lost = [record for record in seen.messages if record.outcome is Outcome.LOST]

    assert any("the broker closed the connection (CONNECTION_FORCED" in reason for reason in reported)
    assert {1, 2} == {record.epoch for record in seen.messages}
    assert {1} >= {record.epoch for record in lost}
    assert all(record.confirm is None and record.group is None for record in lost)
    assert len(seen.messages) == len({(record.epoch, record.seq) for record in seen.messages})


def test_a_memory_alarm_blocks_the_probe_and_lets_it_go(lab, measure, run):
    """Nothing is published under an alarm; the gap is reported as blocked seconds and is not filled afterwards."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "confirm", rate=20, streams=BOTH) as seen:
            for kind in BOTH:
                await seen.until_acked(kind, 10)
            await asyncio.to_thread(lab.ctl, 0, "set_vm_memory_high_watermark", "0.00001")
            try:
                for kind in BOTH:
                    await seen.until(
                        lambda kind=kind: seen.outcome(kind).state is ProbeState.BLOCKED, f"{kind} blocked"
                    )
                before = seen.outcome("quorum")
                await seen.until(
                    lambda: seen.outcome("quorum").blocked_seconds > before.blocked_seconds + 2, "blocked time"
                )
                during = seen.outcome("quorum")
            finally:
                await asyncio.to_thread(lab.ctl, 0, "set_vm_memory_high_watermark", "0.4")
            for kind in BOTH:
                await seen.until_acked(kind, seen.outcome(kind).outcomes["acked"] + 10)
        return seen, before, during

    seen, before, during = run(scenario())

    assert "low on memory" in during.reason
    assert during.success is False
    assert sum(during.outcomes.values()) + during.outstanding <= sum(before.outcomes.values()) + before.outstanding + 1
    assert all(record.send_delay < 2 for record in seen.messages)


def test_a_foreign_queue_of_our_name_is_left_alone(lab, measure, run):
    """Other arguments: the stream says what differs and what to do; the other stream goes on, the queue stays."""
    prefix = f"ackscope.probe.test-{secrets.token_hex(4)}"
    queue = f"{prefix}.confirm.classic"
    foreign = pika.BlockingConnection(pika.URLParameters(lab.nodes[0].amqp))
    foreign.channel().queue_declare(queue, durable=True, arguments={"x-max-length": 7})

    async def scenario():
        async with measure(lab.nodes[0].amqp, "confirm", prefix=prefix, rate=20, streams=BOTH) as seen:
            await seen.until_acked("quorum", 20)
            failed = seen.outcome("classic")
            listed = await asyncio.to_thread(lab.ctl, 0, "list_queues", "name", "arguments", "messages", "--silent")
        return failed, listed

    failed, listed = run(scenario())
    foreign.close()
    (row,) = [line for line in listed.splitlines() if line.startswith(queue)]

    assert failed.state is ProbeState.FAILED
    assert "other arguments, and was not changed" in failed.reason
    assert "probes.prefix" in failed.reason
    assert sum(failed.outcomes.values()) == 0
    assert "x-expires" not in row
    assert row.endswith("\t0")


def test_a_broker_that_does_not_answer_is_undecided_and_not_silent(lab_43, measure, run):
    """Silence is counted, also for messages that the bound kept back; then a new channel replaces the old one."""
    gave_up = "were not confirmed within 1 s; the channel is closed"

    async def scenario():
        settings = {"rate": 300, "streams": ["quorum"], "undecided_after": 1, "max_outstanding": 30}
        async with measure(lab_43.nodes[0].amqp, "confirm", **settings) as seen:
            await seen.until_acked("quorum", 20)
            await asyncio.to_thread(lab_43.ctl, 0, "eval", _wal("suspend"))
            try:
                await seen.until(lambda: seen.outcome("quorum").connects >= 2, "a new channel")
            finally:
                await asyncio.to_thread(lab_43.ctl, 0, "eval", _wal("resume"))
            await seen.until_acked("quorum", seen.outcome("quorum").outcomes["acked"] + 50)
        return seen

    seen = run(scenario())
    undecided = [record for record in seen.messages if record.outcome is Outcome.TIMED_OUT]
    reported = [outcome.reason for batch in seen.batches for outcome in batch.outcomes if outcome.reason]

    kept_back = [record for record in seen.messages if record.seq < 0]

    assert any(gave_up in reason for reason in reported)
    assert kept_back
    assert {Outcome.TIMED_OUT, Outcome.LOST} >= {record.outcome for record in kept_back}
    assert any(record.seq > 0 for record in undecided)
    assert all(record.confirm is None for record in undecided)
    assert max(outcome.outstanding for batch in seen.batches for outcome in batch.outcomes) <= 30
    assert len(seen.messages) == len({(record.epoch, record.seq) for record in seen.messages})


def _wal(act):
    """Stop or continue the process that writes for all quorum queues of the node."""
    return f"sys:{act}(whereis(ra_log_wal))."
