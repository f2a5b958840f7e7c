"""Receive times from the kernel."""

import socket
import struct
import time
from types import SimpleNamespace

import pytest
from pika.adapters.utils.connection_workflow import AMQPConnectionWorkflowAborted

from probes import kernel_timestamps
from probes.kernel_timestamps import TimestampedConnection, receive


class Transport:
    """A minimal transport for a connection."""

    def __init__(self, sock):
        self._sock, self.waiting = sock, b""

    def get_write_buffer_size(self):
        """Return the number of waiting bytes."""
        return len(self.waiting)

    def write(self, data):
        """Buffer bytes that cannot be sent yet."""
        self.waiting += data


def connection(sock):
    """A connection that never spoke to a broker, on this socket."""
    made = TimestampedConnection.__new__(TimestampedConnection)
    made._transport = Transport(sock)
    made.use_kernel_times()
    return made


def _until_the_kernel_tells(made, client, broker):
    """Wait until the kernel reports receive times; it starts with a short delay after it was asked."""
    deadline = time.monotonic() + 10
    reported = False
    while not reported:
        assert time.monotonic() < deadline
        broker.sendall(b"first")
        time.sleep(0.05)
        reading = time.monotonic()
        made._transport._sigint_safe_recv(client, 4096)
        reported = made.read_at < reading - 0.01


def test_bytes_that_waited_keep_the_time_of_their_coming():
    """A process that waits for a CPU does not make the broker look slow."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    broker, _ = listener.accept()
    made = connection(client)
    _until_the_kernel_tells(made, client, broker)
    before = time.monotonic()
    broker.sendall(b"ack")
    sent = time.monotonic()
    # The reader is late; the comparison does not depend on by how much.
    time.sleep(0.2)
    data = made._transport._sigint_safe_recv(client, 4096)
    for each in (client, broker, listener):
        each.close()

    assert b"ack" == data
    assert before - 0.01 <= made.read_at <= sent + 0.1


class Stamped:
    """A socket with one packet, which the kernel saw at a wall time."""

    def __init__(self, wall):
        self._wall = wall

    def recvmsg(self, most, room):
        """Return the packet with its time."""
        stamp = struct.pack("@ll", int(self._wall), round(self._wall % 1 * 1e9))
        return b"ack", [(socket.SOL_SOCKET, kernel_timestamps._SO_TIMESTAMPNS, stamp)], 0, None


@pytest.mark.parametrize("interruptions", [0, 1, 2])
def test_an_interruption_between_two_clocks_does_not_move_the_answer(monkeypatch, interruptions):
    """A packet of 2 ms ago stays 2 ms old, also if the process loses the CPU for 50 ms between the readings."""
    clock = SimpleNamespace(now=100.0, left=interruptions)

    def wall():
        if clock.left:
            clock.left -= 1
            clock.now += 0.05
        return clock.now + 1e9

    monkeypatch.setattr(kernel_timestamps, "time", SimpleNamespace(monotonic=lambda: clock.now, time=wall))
    data, at = receive(Stamped(1e9 + 99.998), 4096)

    assert b"ack" == data
    assert at == pytest.approx(99.998, abs=1e-6)


def test_if_every_reading_is_interrupted_the_time_of_reading_counts(monkeypatch):
    """A late receive time is an upper bound; an early one would give a negative latency."""
    clock = SimpleNamespace(now=100.0)

    def wall():
        clock.now += 0.05
        return clock.now + 1e9

    monkeypatch.setattr(kernel_timestamps, "time", SimpleNamespace(monotonic=lambda: clock.now, time=wall))

    assert (b"ack", 100.0) == receive(Stamped(1e9 + 99.998), 4096)


@pytest.mark.parametrize("ahead", [7200.0, 90.0, -90.0, -7200.0])
def test_if_the_wall_clock_was_set_the_time_of_reading_counts(monkeypatch, ahead):
    """An ack that arrived before a jump by hours would else seem to have come a second before its message was sent."""
    clock = SimpleNamespace(monotonic=lambda: 100.0, time=lambda: 1e9 + 100.0 + ahead)
    monkeypatch.setattr(kernel_timestamps, "time", clock)

    assert (b"ack", 100.0) == receive(Stamped(1e9 + 99.998), 4096)


def test_a_socket_without_such_times_is_left_alone():
    """TLS reads whole records."""
    one, other = socket.socketpair()
    other.close()
    made = TimestampedConnection.__new__(TimestampedConnection)
    made._transport = Transport(object())
    made.use_kernel_times()
    one.close()

    assert not hasattr(made._transport, "_sigint_safe_recv")


def test_what_is_sent_goes_at_once_and_the_rest_waits():
    """A full kernel buffer does not block: pika sends the rest when there is room."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    broker, _ = listener.accept()
    client.setblocking(False)
    made = connection(client)
    made.bytes_sent = made.frames_sent = 0
    before = time.monotonic()
    at = made.send_now(b"publish")
    received = broker.recv(100)
    big = b"x" * 50_000_000
    made.send_now(big)
    waiting = made._transport.waiting
    for each in (client, broker, listener):
        each.close()

    assert b"publish" == received
    assert before <= at <= time.monotonic()
    assert 0 < len(waiting) < len(big)
    assert (7 + len(big), 2) == (made.bytes_sent, made.frames_sent)


def test_a_handshake_that_was_given_up_is_no_fault():
    """Pika then passes an exception class where it should pass an exception."""
    made = TimestampedConnection.__new__(TimestampedConnection)
    seen = []
    made._handle_connection_workflow_failure = seen.append
    made._on_connection_workflow_done(AMQPConnectionWorkflowAborted)

    assert [None] == seen
