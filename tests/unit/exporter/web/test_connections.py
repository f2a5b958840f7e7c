import socket

import pytest

from exporter.web.connections import OpenConnections


@pytest.fixture
def pairs():
    """Return three connections: our ends and those of the clients."""
    pairs = [socket.socketpair() for _ in range(3)]
    yield pairs
    for pair in pairs:
        for end in pair:
            end.close()


def test_the_longest_idle_makes_room(pairs):
    """Its client sees the close; active connections stay."""
    (first, client), (second, _), (third, _) = pairs
    connections = OpenConnections(2)
    for sock in (first, second):
        assert connections.enter(sock)
        connections.idle(sock, idle=False)
    assert not connections.enter(third)

    connections.idle(first, idle=True)
    connections.idle(second, idle=True)
    connections.idle(second, idle=False)

    assert connections.enter(third)
    assert (b"", 2) == (client.recv(1), len(connections))


def test_one_that_has_sent_nothing_yet_is_idle(pairs):
    """A client that opens many silent connections loses its own."""
    (first, client), (second, _), _ = pairs
    connections = OpenConnections(1)

    assert connections.enter(first)
    assert connections.enter(second)
    assert (b"", 1) == (client.recv(1), len(connections))


def test_one_that_has_ended_makes_room_too(pairs):
    """Removing a connection twice, or an unknown one, has no effect."""
    connections = OpenConnections(1)
    connections.enter(pairs[0][0])
    connections.leave(pairs[0][0])
    connections.leave(pairs[0][0])
    connections.idle(pairs[0][0], idle=True)

    assert 0 == len(connections)
    assert connections.enter(pairs[1][0])


def test_it_is_ended_through_the_socket_that_it_goes_on_through(pairs):
    """With TLS, the accepted socket is only the name of the connection."""
    (accepted, _), (spoken, client), _ = pairs
    connections = OpenConnections(1)
    connections.enter(accepted)
    connections.replace(accepted, spoken)
    connections.close()

    assert (b"", 0) == (client.recv(1), len(connections))
