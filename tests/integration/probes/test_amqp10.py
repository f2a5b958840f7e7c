"""The probes over AMQP 1.0, against real brokers."""

import asyncio
import subprocess
import sys

import pytest

from ackscope.records import Outcome, ProbeState
from lab.cluster import start_lab
from probes.amqp10.connection import Amqp10Connection, queue_address
from probes.amqp10.links import LinkEnded, Settlement
from probes.amqp10.outcomes import CONNECTION_LOSS, QUEUE_DELETED
from probes.probe_connection import ProbeConnection
from probes.queues import one_shot
from probes.settings import AmqpSettings
from tests.integration.probes.relays import tls_in_front
from tests.integration.probes.test_steps import failures, until_tried

pytestmark = pytest.mark.integration

KINDS = ("classic", "quorum", "stream")
EVERY_STEP = {
    *("accepted", "rejected", "released", "modified", "undeliverable"),
    *("credit", "drain", "link-close", "queue-deleted", "connection-loss"),
}


@pytest.fixture(params=["4.0", "4.3"], scope="module")
def native(request):
    """One node of each version that speaks AMQP 1.0 by itself."""
    if request.param == "4.3":
        yield request.getfixturevalue("lab_43")
    else:
        with start_lab(request.param) as running:
            yield running


def test_every_message_has_one_outcome_and_is_counted_once(native, measure, run):
    """The ledger of 0-9-1 keeps the book of 1.0; how answers were framed is not known, and not claimed."""

    async def scenario():
        async with measure(native.nodes[0].amqp, "settle", rate=100) as seen:
            for kind in KINDS:
                await seen.until_acked(kind, 100)
        return seen

    seen = run(scenario())

    for kind in KINDS:
        records = [record for record in seen.messages if record.stream == kind]
        outcome = seen.outcome(kind)
        assert len(records) == len({(record.epoch, record.seq) for record in records})
        assert len(records) == sum(outcome.outcomes.values())
        assert {Outcome.ACKED} == {record.outcome for record in records}
        assert outcome.broker == f"RabbitMQ {native.broker}"
        assert {(None, None)} == {(record.multiple, record.group) for record in records}
        assert all(0 < record.confirm < 30 for record in records)
    assert [] == seen.bursts


def test_a_full_queue_rejects(native, measure, run):
    """Each outcome is `rejected`, and that is success."""

    async def scenario():
        async with measure(native.nodes[0].amqp, "reject", rate=50) as seen:

            def refused():
                outcome = seen.outcome("reject")
                return outcome is not None and outcome.outcomes["nacked"] >= 20

            await seen.until(refused, "20 rejected")
            return seen.outcome("reject")

    outcome = run(scenario())

    assert outcome.success is True
    assert outcome.outcomes["acked"] == 0


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_every_way_to_settle_does_what_is_documented(native, measure, run, kind):
    """The four outcomes, credit, drain, a closed link, a deleted queue, a lost connection."""

    async def scenario():
        async with measure(
            native.nodes[0].amqp, "outcomes", interval=0.2, disruption_every=0.5, queue_types=[kind]
        ) as seen:
            await until_tried(seen, kind, CONNECTION_LOSS, 2)
            return await until_tried(seen, kind, QUEUE_DELETED, 2)

    outcome = run(scenario())

    assert dict.fromkeys(EVERY_STEP, 0) == failures(outcome), outcome.steps
    assert outcome.redeliveries > 0
    assert outcome.connects == 1


def test_a_queue_that_is_deleted_comes_back_and_no_message_is_forgotten(native, measure, run):
    """The broker returns its messages, or ends the link and names the condition; the queue is declared again."""

    async def scenario():
        async with measure(native.nodes[0].amqp, "settle", rate=50, queue_types=["classic"]) as seen:
            await seen.until_acked("classic", 5)
            link = await ProbeConnection.open(AmqpSettings(url=native.nodes[0].amqp).server(), "test")
            await link.delete(f"{seen.prefix}.settle.classic")
            await link.close()

            def noticed():
                outcome = seen.outcome("classic")
                return outcome.outcomes["returned"] > 0 or outcome.connects > 1

            await seen.until(noticed, "the deletion is noticed")
            await seen.until_acked("classic", seen.outcome("classic").outcomes["acked"] + 20)
        return seen

    seen = run(scenario())

    reasons = [outcome.reason for batch in seen.batches for outcome in batch.outcomes if outcome.reason]
    assert all("amqp:resource-deleted" in reason for reason in reasons), reasons
    assert len(seen.messages) == sum(seen.outcome("classic").outcomes.values())


@pytest.mark.slow
def test_an_alarm_blocks_and_nothing_is_sent_meanwhile(measure, run):
    """The state names what the broker does; when the alarm ends, the probe goes on in the same connection."""
    with start_lab("4.3") as lab:

        async def watermark(value):
            await asyncio.to_thread(lab.ctl, 0, "set_vm_memory_high_watermark", value)

        async def scenario():
            async with measure(lab.nodes[0].amqp, "settle", rate=20, queue_types=["quorum"]) as seen:
                await seen.until_acked("quorum", 10)
                await watermark("0.00001")
                await seen.until(lambda: seen.outcome("quorum").state is ProbeState.BLOCKED, "blocked")
                blocked = seen.outcome("quorum")
                await asyncio.sleep(1.0)
                during = sum(seen.outcome("quorum").outcomes.values())
                await watermark("0.6")
                await seen.until_acked("quorum", blocked.outcomes["acked"] + 20)
                return blocked, during, seen.outcome("quorum")

        blocked, during, after = run(scenario())

    assert "AMQP 1.0" in blocked.reason
    assert during - sum(blocked.outcomes.values()) <= 2
    assert after.connects == 1
    assert after.blocked_seconds > 1


def test_a_broker_without_amqp_1_0_is_unsupported_and_no_failure(lab_310, measure, run):
    """One line says so, for every stream; nothing failed."""

    async def scenario():
        for probe, stream in (("settle", "classic"), ("reject", "reject"), ("outcomes", "quorum")):
            async with measure(lab_310.nodes[0].amqp, probe) as seen:
                await seen.until(
                    lambda seen=seen, stream=stream: (
                        seen.outcome(stream) is not None and seen.outcome(stream).state is ProbeState.UNSUPPORTED
                    ),
                    f"{probe} unsupported",
                )
                yield_ = seen.outcome(stream)
                assert f"and this is RabbitMQ {lab_310.broker}" in yield_.reason
                assert (None, {}) == (yield_.doubtful, yield_.steps)

    run(scenario())


def test_the_command_says_what_is_unsupported(lab_310):
    """Exit code 3, as nothing was measured, and the reason in the report."""
    done = subprocess.run(
        [sys.executable, "-m", "ackscope", "probe", "settle", "--amqp", lab_310.nodes[0].amqp, "--for", "1s"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 3
    assert "NOT MEASURED: 127.0.0.1" in done.stdout
    assert "AMQP 1.0 is measured on RabbitMQ 4.0" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_refused_link_tells_its_condition(native, run):
    """A queue that does not exist, and one that is deleted under a link."""

    async def scenario():
        server = AmqpSettings(url=native.nodes[0].amqp).server()
        helper, link = await ProbeConnection.open(server, "test"), await Amqp10Connection.open(server, "test")
        queue = one_shot("ackscope.probe", "test", "amqp10", "links", "classic")
        try:
            with pytest.raises(LinkEnded) as refused:
                await link.sender(queue_address("there is no such queue"))
            await helper.declare(queue)
            sender = await link.sender(queue_address(queue.name))
            sender.send(link.encode(b"x"))
            await link.until(lambda: len(sender.answers) == 1)
            receiver = await link.receiver(queue_address(queue.name), credit=1)
            await link.until(lambda: len(receiver.deliveries) == 1)
            await helper.delete(queue.name)
            await link.until(lambda: receiver.ended is not None)
        finally:
            await helper.delete(queue.name)
            await helper.close()
            await link.close()
        return refused.value.condition, sender.answers[0].settlement, receiver.ended.condition

    assert ("amqp:not-found", Settlement.ACCEPTED, "amqp:resource-deleted") == run(scenario())


def test_wrong_credentials_are_one_line_without_the_password(lab_43, run):
    """The library prints nothing by itself."""

    async def scenario():
        url = lab_43.nodes[0].amqp.replace("guest:guest", "guest:wrong-secret")
        with pytest.raises(Exception, match="login refused for user 'guest'") as error:
            await Amqp10Connection.open(AmqpSettings(url=url).server(), "test")
        return str(error.value)

    assert "wrong-secret" not in run(scenario())


def test_tls_is_spoken_and_times_are_still_those_of_the_kernel(lab_43, run, certificate):
    """The certificate is verified; a message is answered."""

    async def scenario():
        async with tls_in_front(lab_43.nodes[0].amqp, certificate) as url:
            server = AmqpSettings(url=url, ca_file=certificate[0]).server()
            link = await Amqp10Connection.open(server, "test")
            try:
                helper = await ProbeConnection.open(AmqpSettings(url=lab_43.nodes[0].amqp).server(), "test")
                queue = one_shot("ackscope.probe", "test", "amqp10", "tls", "classic")
                await helper.declare(queue)
                sender = await link.sender(queue_address(queue.name))
                sent = sender.send(link.encode(b"x" * 100_000))
                await link.until(lambda: len(sender.answers) == 1)
                await helper.delete(queue.name)
                await helper.close()
                return sender.answers[0].at - sent, sender.answers[0].settlement
            finally:
                await link.close()

    seconds, settlement = run(scenario())

    assert Settlement.ACCEPTED is settlement
    assert 0 < seconds < 30
