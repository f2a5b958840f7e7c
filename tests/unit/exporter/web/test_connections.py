import contextlib
import os
import socket
import ssl

import psutil
import pytest

from exporter.web.config import WebConfig
from tests.unit.exporter.made import eventually
from tests.unit.exporter.web.certificates import make
from tests.unit.exporter.web.raw import answered, connect, exchange, rest, serving

GOOD = b"GET /short HTTP/1.1\r\nHost: x\r\n\r\n"
NOT_READ = b"GET /huge HTTP/1.1\r\nHost: x\r\n\r\n" * 20


@pytest.fixture
def few():
    """Room for four connections."""
    with serving(max_connections=4) as server:
        yield server


def crowd(server, sent, count=12):
    """Clients that connect, send this and do nothing more."""
    clients = []
    for _ in range(count):
        client = connect(server)
        with contextlib.suppress(OSError):
            client.sendall(sent)
        clients.append(client)
    return clients


@pytest.mark.parametrize("sent", [b"", b"GET /sh", GOOD, NOT_READ, b"POST /do HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"])
def test_clients_that_do_nothing_make_room(few, sent):
    """Whether they do not send their request or do not read its answer. The next client is answered."""
    clients = crowd(few, sent)

    assert [200] * 5 == [int(exchange(few, GOOD).split()[1]) for _ in range(5)]
    assert few.open_connections <= 4
    for client in clients:
        client.close()


def test_the_client_that_has_done_nothing_for_longest_makes_room(few):
    """It sees the end of its connection; the others stay."""
    clients = []
    for _ in range(4):
        clients.append(connect(few))
        eventually(lambda: few.open_connections == len(clients))
    for client in clients[:2]:
        client.sendall(GOOD)
        assert b"{}" == answered(client)
    fifth = connect(few)

    assert b"" == clients[2].recv(1)
    for client in (clients[0], clients[1], clients[3], fifth):
        client.sendall(GOOD)
        assert b"{}" == answered(client)
    for client in (*clients, fifth):
        client.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_responses_are_sent_without_delay(host):
    """Otherwise each but the first of a connection waits 40 ms, until the client acknowledges its headers."""
    with serving(host=host) as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection((host, port), timeout=5) as client:
            eventually(lambda: server.open_connections == 1)
            accepted = [
                it.fd
                for it in psutil.Process().net_connections()
                if it.laddr.port == port and it.raddr and it.raddr.port == client.getsockname()[1]
            ]
            with socket.socket(fileno=os.dup(accepted[0])) as ours:
                delays_not = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    assert delays_not


def test_handshakes_that_do_not_go_on_make_room(tmp_path):
    """They count, because each holds a socket."""
    make(tmp_path, "server")
    (tmp_path / "web.yml").write_text("tls_server_config: {cert_file: server.pem, key_file: server.key}")
    context = ssl.create_default_context(cafile=tmp_path / "server.pem")
    with serving(max_connections=4, web=WebConfig(tmp_path / "web.yml")) as server:
        silent = crowd(server, b"\x16\x03\x01")
        with connect(server) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
            client.sendall(GOOD)

            assert b"{}" == answered(client)
        assert server.open_connections <= 4
        for each in silent:
            each.close()


def test_a_client_that_closes_its_side_gets_its_answers(few):
    """As clients of one request do; those that it sent before are answered too, and then the connection ends."""
    with connect(few) as client:
        client.sendall(GOOD * 3 + b"GET /sh")
        client.shutdown(socket.SHUT_WR)
        answer = rest(client)

    assert 3 == answer.count(b"HTTP/1.1 200 OK")
    eventually(lambda: few.open_connections == 0)
