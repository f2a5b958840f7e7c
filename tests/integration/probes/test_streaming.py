"""The probe over the stream protocol, against real brokers whose nodes advertise a name that leads nowhere."""

import asyncio
import subprocess
import sys
from dataclasses import replace

import pika
import pytest
import requests

from ackscope.address import parse_amqp
from ackscope.records import Outcome, ProbeState
from lab.cluster import start_lab
from lab.node import Extra
from probes.probe_connection import ProbeConnection
from probes.settings import AmqpSettings
from probes.streaming.connection import StreamProtocolConnection
from tests.integration.probes.relays import relay, tls_in_front

pytestmark = pytest.mark.integration

STREAMS = Extra(
    plugins=("rabbitmq_stream",),
    config="stream.listeners.tcp.1 = 127.0.0.1:{port}\nstream.advertised_host = nowhere.invalid\n",
)


def stream_port(node):
    """The port of the stream protocol of a node."""
    found = requests.get(node.management + "/api/overview", timeout=30).json()["listeners"]
    return next(each["port"] for each in found if (each["node"], each["protocol"]) == (node.name, "stream"))


@pytest.fixture(params=["3.10", "4.3"], scope="module")
def streaming(request):
    """One node of each version, with the plugin: the lab and the port of the stream protocol."""
    with start_lab(request.param, extra=STREAMS) as running:
        yield running, stream_port(running.nodes[0])


def command(*words):
    """Run `ackscope probe`."""
    return subprocess.run(
        [sys.executable, "-m", "ackscope", "probe", *words], capture_output=True, text=True, timeout=90, check=False
    )


def queues(lab):
    """Names of all queues of the broker."""
    found = requests.get(lab.nodes[0].management + "/api/queues", timeout=30).json()
    return {queue["name"] for queue in found}


async def delete(amqp, queue):
    """Delete a queue, also while clients use it."""
    link = await ProbeConnection.open(AmqpSettings(url=amqp).server(), "test")
    await link.delete(queue)
    await link.close()


def test_every_message_is_confirmed_and_delivered_once(streaming, measure, run):
    """One record for each, with both times; nothing is missing, duplicate or out of order."""
    lab, port = streaming

    async def scenario():
        async with measure(lab.nodes[0].amqp, "streaming", amqp={"stream_port": port}, rate=100) as seen:
            await seen.until_acked("stream", 200)
        return seen

    seen = run(scenario())
    outcome, records = seen.outcome("stream"), seen.messages

    assert len(records) == len({(record.epoch, record.seq) for record in records}) == sum(outcome.outcomes.values())
    assert {Outcome.ACKED} == {record.outcome for record in records}
    assert {1} == {record.deliveries for record in records}
    assert all(0 < record.confirm < 30 and 0 < record.delivery < 30 for record in records)
    assert (0, 0, 0) == (outcome.missing, outcome.duplicates, outcome.out_of_order)
    # The protocol tells neither frames of acks nor redeliveries, as far as they are counted here.
    assert (None, [], {None}) == (outcome.redeliveries, seen.bursts, {record.redelivered for record in records})
    assert (f"RabbitMQ {lab.broker}", 1, "stream") == (outcome.broker, outcome.connects, outcome.queue_type)


def test_its_stream_is_bounded_and_marked(streaming, measure, run):
    """By size and age, in small segments, as the streams of other probes."""
    lab, port = streaming

    async def scenario():
        async with measure(lab.nodes[0].amqp, "streaming", amqp={"stream_port": port}, rate=20) as seen:
            await seen.until_acked("stream", 5)
            url = f"{lab.nodes[0].management}/api/queues/%2F/{seen.prefix}.streaming.stream"
            return await asyncio.to_thread(requests.get, url, timeout=30)

    arguments = run(scenario()).json()["arguments"]

    assert ("stream", "1h") == (arguments["x-queue-type"], arguments["x-max-age"])
    assert 0 < arguments["x-stream-max-segment-size-bytes"] <= arguments["x-max-length-bytes"] <= 4_000_000


def test_a_deleted_stream_comes_back_and_no_message_is_forgotten(streaming, measure, run):
    """Its offsets begin again; what was published to the new one is read, and counted once."""
    lab, port = streaming
    amqp = lab.nodes[0].amqp

    async def scenario():
        async with measure(amqp, "streaming", amqp={"stream_port": port}, rate=100) as seen:
            await seen.until_acked("stream", 50)
            await delete(amqp, f"{seen.prefix}.streaming.stream")
            await seen.until(lambda: seen.outcome("stream").connects > 1, "a second session")
            await seen.until_acked("stream", seen.outcome("stream").outcomes["acked"] + 50)
        return seen

    seen = run(scenario())
    outcome = seen.outcome("stream")
    reasons = {each.reason for batch in seen.batches for each in batch.outcomes if each.reason}

    assert all("was deleted, or its leader or replica moved" in reason for reason in reasons), reasons
    assert (0, 0, 0) == (outcome.missing, outcome.duplicates, outcome.out_of_order)
    assert len(seen.messages) == sum(outcome.outcomes.values())
    assert {1} == {record.deliveries for record in seen.messages if record.outcome is Outcome.ACKED}


def test_a_lost_connection_costs_what_was_under_way(streaming, measure, run):
    """The reader goes on where it was; messages of the first session are not read twice."""
    lab, port = streaming
    server = AmqpSettings(url=lab.nodes[0].amqp).server()
    there = replace(server, address=replace(server.address, port=port))

    async def scenario():
        async with relay([port]) as (entrance, cut):
            async with measure(lab.nodes[0].amqp, "streaming", amqp={"stream_port": entrance}, rate=100) as seen:
                await seen.until_acked("stream", 50)
                cut()
                await seen.until(lambda: seen.outcome("stream").connects > 1, "a second session")
                await seen.until_acked("stream", seen.outcome("stream").outcomes["acked"] + 50)
            link = await StreamProtocolConnection.open(there, "test")
            await link.close()
        return seen, link.product

    seen, product = run(scenario())
    outcome = seen.outcome("stream")

    assert (0, 0, 0) == (outcome.missing, outcome.duplicates, outcome.out_of_order)
    assert f"RabbitMQ {lab.broker}" == product
    assert {Outcome.ACKED, Outcome.LOST} >= {record.outcome for record in seen.messages}
    assert len(seen.messages) == sum(outcome.outcomes.values())


@pytest.mark.slow
def test_a_disk_alarm_blocks_and_nothing_is_sent_meanwhile(streaming, measure, run):
    """The broker tells nothing, and reads nothing; when the alarm ends, the probe goes on in the same connection."""
    lab, port = streaming

    async def limit(value):
        await asyncio.to_thread(lab.ctl, 0, "set_disk_free_limit", value)

    async def scenario():
        async with measure(lab.nodes[0].amqp, "streaming", amqp={"stream_port": port}, rate=20) as seen:
            await seen.until_acked("stream", 10)
            await limit("900000GB")
            try:
                await seen.until(lambda: seen.outcome("stream").state is ProbeState.BLOCKED, "blocked")
                blocked = seen.outcome("stream")
            finally:
                await limit("10MB")
            await seen.until_acked("stream", blocked.outcomes["acked"] + blocked.outstanding + 20)
            return blocked, seen.outcome("stream")

    blocked, after = run(scenario())

    assert "it reads nothing from a publisher over the stream protocol" in blocked.reason
    assert (1, 0) == (after.connects, after.missing)
    assert after.blocked_seconds > 0


def test_the_command_prints_both_latencies_and_leaves_nothing_behind(streaming):
    """In 80 columns; its stream is deleted."""
    lab, port = streaming
    done = command("streaming", "--amqp", lab.nodes[0].amqp, "--stream-port", str(port), "--for", "1s", "--rate", "100")

    assert 0 == done.returncode, done.stderr
    assert f"streaming probe of RabbitMQ {lab.broker} at 127.0.0.1" in done.stdout
    assert "\n  delivered  missing 0  duplicates 0  out of order 0\n" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert set() == {name for name in queues(lab) if name.startswith("ackscope.probe.once")}


def test_a_sweep_deletes_the_stream_of_a_killed_exporter(streaming):
    """By its name, and no other."""
    lab, _ = streaming
    prefix = "ackscope.probe.swept"
    client = pika.BlockingConnection(pika.URLParameters(lab.nodes[0].amqp))
    for name in (f"{prefix}.streaming.stream", f"{prefix}.of-a-user"):
        client.channel().queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    try:
        done = command("sweep", "--amqp", lab.nodes[0].amqp, "--prefix", prefix)
        left = {name for name in queues(lab) if name.startswith(prefix)}
    finally:
        client.channel().queue_delete(f"{prefix}.of-a-user")
        client.close()

    assert (0, f"deleted {prefix}.streaming.stream\n") == (done.returncode, done.stdout)
    assert {f"{prefix}.of-a-user"} == left


def test_a_broker_without_the_plugin_is_unsupported_and_no_failure(lab_43, measure, run):
    """One line says what is missing; nothing is doubted, nothing failed, and no stream is made."""

    async def scenario():
        closed = asyncio.get_running_loop().create_server
        server = await closed(asyncio.Protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        async with measure(lab_43.nodes[0].amqp, "streaming", amqp={"stream_port": port}) as seen:
            await seen.until(
                lambda: seen.outcome("stream") and seen.outcome("stream").state is ProbeState.UNSUPPORTED, "unsupported"
            )
            return seen, seen.outcome("stream"), await asyncio.to_thread(queues, lab_43)

    seen, outcome, there = run(scenario())

    assert "nothing listens there for the stream protocol; enable the plugin rabbitmq_stream" in outcome.reason
    assert (None, 0) == (outcome.doubtful, sum(outcome.outcomes.values()))
    assert f"RabbitMQ {lab_43.broker}" == outcome.broker
    assert not {name for name in there if name.startswith(seen.prefix)}


def test_the_command_says_what_is_wrong_with_the_port(lab_43):
    """Exit code 3, and the reason in the report: the port of AMQP does not speak this protocol."""
    port = parse_amqp(lab_43.nodes[0].amqp).port
    done = command("streaming", "--amqp", lab_43.nodes[0].amqp, "--stream-port", str(port), "--for", "1s")

    assert 3 == done.returncode
    assert f"127.0.0.1:{port}: what answers does not speak the stream protocol" in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_wrong_credentials_are_one_line_without_the_password(streaming, run):
    """As over AMQP; and the same for a virtual host that does not exist."""
    lab, port = streaming
    server = AmqpSettings(url=lab.nodes[0].amqp, stream_port=port).server().streams

    async def scenario():
        wrong = replace(server, address=replace(server.address, password="wrong-secret"))
        with pytest.raises(Exception, match="login refused for user 'guest'") as login:
            await StreamProtocolConnection.open(wrong, "test")
        nowhere = replace(server, address=replace(server.address, vhost="nöwhere"))
        with pytest.raises(Exception, match="may not use virtual host 'nöwhere'"):
            await StreamProtocolConnection.open(nowhere, "test")
        return str(login.value)

    assert "wrong-secret" not in run(scenario())


def test_tls_is_spoken(streaming, run, certificate):
    """The certificate is verified, and the node tells its address."""
    _, port = streaming

    async def scenario():
        async with tls_in_front(f"amqp://guest:guest@127.0.0.1:{port}", certificate) as url:
            link = await StreamProtocolConnection.open(AmqpSettings(url=url, ca_file=certificate[0]).server(), "test")
            await link.close()
            with pytest.raises(Exception, match="certificate not trusted"):
                await StreamProtocolConnection.open(AmqpSettings(url=url).server(), "test")
            return link.advertised

    assert ("nowhere.invalid", port) == run(scenario())


@pytest.mark.slow
def test_behind_a_load_balancer_the_leader_is_found(measure, run):
    """The nodes advertise names that lead nowhere, and the balancer leads to another node each time."""
    with start_lab("4.3", nodes=3, extra=STREAMS) as cluster:
        ports = [stream_port(node) for node in cluster.nodes]

        async def scenario():
            async with relay(ports) as (entrance, _):
                # The stream is made on the second node, so that the first one is not its leader.
                amqp = cluster.nodes[1].amqp
                async with measure(amqp, "streaming", amqp={"stream_port": entrance}, rate=50) as seen:
                    await seen.until_acked("stream", 100)
            # Without the balancer, the only address leads to a node that is not the leader.
            async with measure(amqp, "streaming", amqp={"stream_port": ports[0]}, rate=50) as alone:
                await alone.until(
                    lambda: alone.outcome("stream") and alone.outcome("stream").state is ProbeState.FAILED, "failed"
                )
            return seen.outcome("stream"), alone.outcome("stream")

        found, alone = run(scenario())

    assert (0, 0, 0, 1) == (found.missing, found.duplicates, found.out_of_order, found.connects)
    assert f"is advertised as nowhere.invalid:{ports[1]}, which cannot be reached" in alone.reason
    assert "set advertised_host" in alone.reason
