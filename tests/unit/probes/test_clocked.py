"""Times of what is read, from the kernel."""

import socket
import time

from probes.clocked import ClockedConnection


class Transport:
    """As far as a connection needs one here."""

    def __init__(self, sock):
        self._sock = sock


def connection(sock):
    """A connection that never spoke to a broker, on this socket."""
    made = ClockedConnection.__new__(ClockedConnection)
    made._transport = Transport(sock)
    made.use_kernel_times()
    return made


def test_bytes_that_waited_keep_the_time_of_their_coming():
    """A process that was kept from its processor does not make a broker slow."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    broker, _ = listener.accept()
    made = connection(client)
    before = time.monotonic()
    broker.sendall(b"ack")
    sent = time.monotonic()
    # A reader that is late; what is compared does not depend on by how much.
    time.sleep(0.2)
    data = made._transport._sigint_safe_recv(client, 4096)
    for each in (client, broker, listener):
        each.close()

    assert b"ack" == data
    assert before - 0.01 <= made.read_at <= sent + 0.1


def test_a_socket_without_such_times_is_left_alone():
    """TLS reads records of its own."""
    one, other = socket.socketpair()
    other.close()
    made = ClockedConnection.__new__(ClockedConnection)
    made._transport = Transport(object())
    made.use_kernel_times()
    one.close()

    assert not hasattr(made._transport, "_sigint_safe_recv")
