"""The probes that time steps, and the one whose messages must be refused, against real brokers."""

import asyncio

import pytest

from ackscope.records import Outcome, ProbeState
from tests.integration.probes.relays import tls_in_front

pytestmark = pytest.mark.integration

BOTH = ("classic", "quorum")


async def until_tried(seen, stream, step, attempts):
    """Wait until a step was tried so often, and return the outcome."""

    def tried():
        outcome = seen.outcome(stream)
        return outcome is not None and step in outcome.steps and outcome.steps[step].attempts >= attempts

    await seen.until(tried, f"{attempts} times {step} on {stream}")
    return seen.outcome(stream)


def failures(outcome):
    """Failures of every step."""
    return {name: step.failures for name, step in outcome.steps.items()}


def test_a_handshake_is_timed_step_by_step_and_closed_in_order(lab, measure, run):
    """No warning in the broker's log: every connection says goodbye."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "handshake", interval=0.1) as seen:
            return await until_tried(seen, "handshake", "channel", 5)

    before = warnings(lab)
    outcome = run(scenario())

    assert {"dns": 0, "tcp": 0, "open": 0, "channel": 0} == failures(outcome)
    assert outcome.success is True
    assert outcome.broker == f"RabbitMQ {lab.broker}"
    assert all(step.seconds.p50 > 0 for step in outcome.steps.values())
    assert before == warnings(lab)


def warnings(lab):
    """Lines of the broker's log about handshake connections that went without a goodbye."""
    text = "".join(file.read_text(errors="replace") for file in lab.folder.rglob("log/*.log"))
    return sum("[warning]" in line and "ackscope-probe handshake" in line for line in text.splitlines())


def test_tls_is_a_step_of_its_own_and_verified(lab_43, measure, run, certificate):
    """With its authority all is well; without, the step fails and says why."""

    async def scenario():
        async with tls_in_front(lab_43.nodes[0].amqp, certificate) as url:
            async with measure(url, "handshake", amqp={"ca_file": certificate[0]}, interval=0.1) as seen:
                trusted = await until_tried(seen, "handshake", "channel", 2)
            async with measure(url, "handshake", interval=0.1, sweep=False) as seen:
                return trusted, await until_tried(seen, "handshake", "tls", 2)

    trusted, refused = run(scenario())

    assert {"dns": 0, "tcp": 0, "tls": 0, "open": 0, "channel": 0} == failures(trusted)
    assert refused.steps["tls"].failures == refused.steps["tls"].attempts
    assert "certificate not trusted" in refused.steps["tls"].reason
    assert "open" not in refused.steps


def test_a_wrong_password_fails_at_open(lab, measure, run):
    """The step and the reason are reported, the password is not."""
    url = lab.nodes[0].amqp.replace("guest:guest", "guest:hunter2")

    async def scenario():
        async with measure(url, "handshake", interval=0.1, sweep=False) as seen:
            return await until_tried(seen, "handshake", "open", 2)

    outcome = run(scenario())

    assert outcome.steps["open"].failures == outcome.steps["open"].attempts
    assert "login refused for user 'guest'; check name and password" in outcome.steps["open"].reason
    assert outcome.success is False
    assert "hunter2" not in repr(outcome)


def test_round_trips_are_timed(lab, measure, run):
    """And survive a closed connection."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "rtt", interval=0.05) as seen:
            await until_tried(seen, "rtt", "declare", 20)
            await asyncio.to_thread(lab.ctl, 0, "close_all_connections", "by a test")
            await seen.until(lambda: seen.outcome("rtt").connects >= 2, "a second session")
            before = seen.outcome("rtt").steps["declare"].attempts
            return await until_tried(seen, "rtt", "declare", before + 20)

    outcome = run(scenario())

    assert outcome.state is ProbeState.RUNNING
    assert outcome.steps["declare"].failures <= 1
    assert outcome.steps["declare"].seconds.p50 > 0


def test_what_comes_again_keeps_its_place_and_says_so(lab, measure, run):
    """Requeued, of a closed channel, of a lost connection, dead: each timed, flags and headers as they must be."""

    async def scenario():
        settings = {"interval": 0.1, "connection_loss_every": 0.3}
        async with measure(lab.nodes[0].amqp, "redelivery", **settings) as seen:
            for kind in BOTH:
                await until_tried(seen, kind, "connection-loss", 2)
                await until_tried(seen, kind, "requeue", 5)
            return [seen.outcome(kind) for kind in BOTH]

    for outcome in run(scenario()):
        assert {"requeue": 0, "channel-close": 0, "dead-letter": 0, "connection-loss": 0} == failures(outcome)
        assert outcome.success is True
        assert outcome.redeliveries >= 10
        assert outcome.connects == 1


def test_messages_that_vanish_are_failed_steps(lab_310, measure, run):
    """An operator's policy throws away what no consumer takes at once; without it, all is well again by itself."""

    async def scenario():
        settings = {"interval": 0.1, "timeout": 0.5, "queue_types": ["classic"]}
        async with measure(lab_310.nodes[0].amqp, "redelivery", **settings) as seen:
            await until_tried(seen, "classic", "requeue", 2)
            pattern = "^" + seen.prefix.replace(".", "\\.") + ".*classic$"
            await asyncio.to_thread(lab_310.ctl, 0, "set_policy", "vanish", pattern, '{"message-ttl": 0}')
            try:
                await seen.until(lambda: failures(seen.outcome("classic"))["requeue"], "a failed step")
                during = seen.outcome("classic")
            finally:
                await asyncio.to_thread(lab_310.ctl, 0, "clear_policy", "vanish")
            await seen.until(lambda: seen.outcome("classic").steps["requeue"].reason is None, "a good step again")
        return during

    during = run(scenario())

    assert during.steps["requeue"].reason == "the first message was not delivered within 0.5 s"
    assert during.success is False


def test_a_memory_alarm_stops_the_rounds(lab_43, measure, run):
    """Blocked is reported with its reason and is no failure; afterwards the rounds go on, on the same connections."""

    async def scenario():
        async with measure(lab_43.nodes[0].amqp, "redelivery", interval=0.1, queue_types=["quorum"]) as seen:
            await until_tried(seen, "quorum", "requeue", 3)
            await asyncio.to_thread(lab_43.ctl, 0, "set_vm_memory_high_watermark", "0.00001")
            try:
                await seen.until(lambda: seen.outcome("quorum").state is ProbeState.BLOCKED, "blocked")
                before = seen.outcome("quorum")
                await seen.until(
                    lambda: seen.outcome("quorum").blocked_seconds > before.blocked_seconds + 2, "blocked time"
                )
                during = seen.outcome("quorum")
            finally:
                await asyncio.to_thread(lab_43.ctl, 0, "set_vm_memory_high_watermark", "0.4")
            after = await until_tried(seen, "quorum", "requeue", during.steps["requeue"].attempts + 3)
        return before, during, after

    before, during, after = run(scenario())

    assert "low on memory" in during.blocked_reason
    assert before.steps["requeue"].attempts == during.steps["requeue"].attempts
    assert set(failures(after).values()) == {0}
    assert after.connects == 1


def test_the_broker_keeps_to_the_prefetch(lab, measure, run):
    """Filled to the limit and never beyond; each ack brings one more."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "prefetch", interval=0.1, prefetch=7) as seen:
            for kind in BOTH:
                await until_tried(seen, kind, "refill", 21)
            return [seen.outcome(kind) for kind in BOTH]

    for outcome in run(scenario()):
        assert {"fill": 0, "refill": 0} == failures(outcome)
        assert (7, 7) == (outcome.prefetch, outcome.unacked.max)
        assert outcome.success is True


def test_every_message_is_nacked_and_that_is_success(lab, measure, run):
    """Nothing is stored: the queue takes no message at all."""

    async def scenario():
        async with measure(lab.nodes[0].amqp, "nack", rate=50) as seen:
            await seen.until(lambda: len(seen.messages) >= 50, "50 messages")
            outcome = seen.outcome("nack")
            listed = await asyncio.to_thread(lab.ctl, 0, "list_queues", "name", "messages", "--silent")
        return seen, outcome, listed

    seen, outcome, listed = run(scenario())

    assert {Outcome.NACKED} == {record.outcome for record in seen.messages}
    assert all(record.confirm > 0 for record in seen.messages)
    assert outcome.success is True
    assert f"{seen.prefix}.nack.nack\t0" in listed
