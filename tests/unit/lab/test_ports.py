import socket
from pathlib import Path

from lab.ports import _is_free, free_ports


def test_ports_are_distinct_and_outside_the_range_of_outgoing_connections():
    """A port that the kernel may give to a client could be taken while a killed node is down."""
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])

    ports = free_ports(50)

    assert 50 == len(set(ports))
    assert max(ports) < ephemeral


def test_a_port_with_a_listener_is_not_free():
    """What listens already keeps its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        assert not _is_free(port)

    assert _is_free(port)
