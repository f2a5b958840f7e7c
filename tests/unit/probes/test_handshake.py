"""The handshake probe against faulty listeners: every failure is a step with its reason."""

import asyncio
import socket
import threading
import time
from random import Random

import pytest

from ackscope.clock import SystemClock
from probes.catalogue.handshake import HandshakeSettings
from probes.handshake import HandshakeStream
from probes.instrument import LoopLag
from probes.probe_stream import StreamContext
from probes.settings import AmqpSettings


def steps(url, timeout=5.0):
    """The steps of one handshake, by name."""

    async def scenario():
        context = StreamContext(
            cluster="shop",
            server=AmqpSettings(url=url).server(),
            prefix="p",
            run_id="0" * 16,
            lag=LoopLag(time.monotonic(), span=None),
            random=Random(1),
        )
        stream = HandshakeStream(context, HandshakeSettings(interval=3600, timeout=timeout))
        living = asyncio.ensure_future(stream.session())
        while not stream.stats.steps.waiting or not stream.idle:  # noqa: ASYNC110  the session makes it so
            await asyncio.sleep(0.01)
        living.cancel()
        return stream.stats.outcome(SystemClock().now())

    outcome = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert outcome.success is False
    return outcome.steps


@pytest.fixture
def listener():
    """Start a port that answers each connection with these bytes and closes it, or stays silent without bytes."""
    sockets, threads = [], []

    def start(answer):
        port = socket.create_server(("127.0.0.1", 0))
        sockets.append(port)

        def serve():
            connection, _ = port.accept()
            sockets.append(connection)
            connection.recv(8)
            if answer is not None:
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_RDWR)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        threads.append(thread)
        return f"127.0.0.1:{port.getsockname()[1]}"

    yield start
    for thread in threads:
        thread.join(10)
    for opened in sockets:
        opened.close()


def test_a_name_that_is_not_known_fails_at_the_first_step():
    """No later step is tried."""
    found = steps("amqp://nowhere.invalid")

    assert ["dns"] == list(found)
    assert "cannot resolve host name 'nowhere.invalid'" in found["dns"].reason


def test_a_closed_port_fails_at_tcp():
    """The name was resolved."""
    found = steps("amqp://127.0.0.1:1")

    assert {"dns": 0, "tcp": 1} == {name: step.failures for name, step in found.items()}
    assert "127.0.0.1:1: connection refused; is RabbitMQ listening there?" == found["tcp"].reason


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (b"", "closes the connection before the AMQP handshake"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "closes the connection before the AMQP handshake"),
        (b"\x01\x00\x00\xff\xff\xff\xff", "closes the connection before the AMQP handshake"),
        (b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x63\xce", "closes the connection before the AMQP handshake"),
    ],
)
def test_what_is_no_amqp_fails_at_open(listener, answer, reported):
    """Examples are no answer, HTTP, an endless frame, an unknown method: each gives the same advice, no traceback."""
    found = steps(f"amqp://{listener(answer)}")

    assert {"dns": 0, "tcp": 0, "open": 1} == {name: step.failures for name, step in found.items()}
    assert reported in found["open"].reason


def test_silence_fails_in_time(listener):
    """The step fails at the timeout, not later."""
    found = steps(f"amqp://{listener(None)}", timeout=0.2)

    assert "no answer in time" in found["open"].reason


def test_a_plain_port_fails_at_tls(listener):
    """The address asks for TLS."""
    found = steps(f"amqps://{listener(b'AMQP' + bytes(20))}")

    assert {"dns": 0, "tcp": 0, "tls": 1} == {name: step.failures for name, step in found.items()}
    assert "no TLS on this port" in found["tls"].reason
