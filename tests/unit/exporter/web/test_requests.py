import contextlib
import logging
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporter.web import connections
from exporter.web.answer import blocks
from exporter.web.http import Response, Route
from tests.unit.exporter.made import eventually
from tests.unit.exporter.web.raw import HUGE, SECONDS, answered, connect, exchange, rest, serving

GOOD = b"GET /short HTTP/1.1\r\nHost: x\r\n\r\n"
HEAD = b"GET /short HTTP/1.1\r\nHost: x\r\n"
LINE = b"GET /short?" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"


def ended(client, byte):
    """Return whether the server has closed the connection, or closes it while a byte is sent, within the timeout."""
    try:
        client.sendall(byte)
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.fixture(scope="module")
def server():
    """One for all examples: each must leave it as it was."""
    with serving() as server:
        yield server


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (LINE, 431),
        (HEAD + b"X: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (HEAD + b"X: y\r\n" * 8000 + b"\r\n", 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n", 400),
        (b"GET /short\r\n", 400),
        (b"GET /short HTTP/9.9\r\nHost: x\r\n\r\n", 505),
        (b"GET /short HTTP/1.x\r\n\r\n", 400),
        (b"GET /short please HTTP/1.1\r\n\r\n", 400),
        (b"GET //[ HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET /short HTTP/1.1\r\n\r\n", 400),
        (HEAD + b"Host: y\r\n\r\n", 400),
        (HEAD + b"no header\r\nContent-Length: 3\r\n\r\nabc", 400),
        (HEAD + b"Content-Length : 3\r\n\r\nabc", 400),
        (b"GET /short HTTP/1.1\r\n Host: x\r\n\r\n", 400),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: 1_0\r\n\r\n", 400),
        (HEAD + "Content-Length: ²\r\n\r\n".encode("latin-1"), 400),
        (HEAD + b"Content-Length: 70000\r\n\r\n" + b"a" * 70_000, 413),
        (HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (b"HEAD /short HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n", 501),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n11170\r\n" + b"a" * 70_000 + b"\r\n0\r\n\r\n", 413),
    ],
)
def test_a_request_that_is_none_is_refused_and_ends_the_connection(server, sent, status):
    """It gets a complete answer. The rest is ignored, because the start of the next request is unknown."""
    answer, after = exchange(server, sent + GOOD), exchange(server, GOOD)

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert 1 == answer.count(b"HTTP/1.1 ") or status == 404
    assert b"x-content-type-options: nosniff\r\n" in answer.lower()
    assert after.startswith(b"HTTP/1.1 200 OK")


def test_a_body_is_consumed_and_forgotten(server):
    """The next request is found behind it."""
    answers = exchange(server, HEAD + b"Content-Length: 60000\r\n\r\n" + b"a" * 60_000 + GOOD)
    chunked = exchange(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + GOOD)

    assert 2 == chunked.count(b"HTTP/1.1 200 OK")
    assert 2 == answers.count(b"HTTP/1.1 200 OK")


def test_a_client_that_asks_whether_to_send_its_body_is_reported_to(server):
    """As curl does with a large one."""
    answer = exchange(server, HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc")

    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("sent", [b"", b"GET /sh", HEAD, HEAD + b"Content-Length: 5\r\n\r\nabc"])
def test_half_a_request_is_no_request(server, sent):
    """The client closed within the request: it gets no answer, and nothing is done."""
    assert b"" == exchange(server, sent)


@pytest.mark.parametrize("sent", [b"", b"G", HEAD, HEAD + b"Content-Length: 5\r\n\r\nabc"])
def test_a_client_that_does_not_go_on_is_cut_off(monkeypatch, sent):
    """It may stop anywhere; the thread is released."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    with serving() as server, connect(server) as client:
        client.sendall(sent)

        assert b"" == rest(client)
        eventually(lambda: server.open_connections == 0)


def test_a_client_that_sends_a_byte_now_and_then_is_cut_off(monkeypatch):
    """Each byte is in time, but the whole request is not."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    with serving() as server, connect(server) as client:
        client.settimeout(0.05)
        sent = 0
        while not ended(client, HEAD[sent : sent + 1]):
            sent += 1

        assert 0 < sent < len(HEAD)


def test_a_connection_that_is_silent_between_requests_ends_after_a_while(monkeypatch):
    """Though not as soon as one that has sent nothing yet."""
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.2)
    with serving() as server, connect(server) as client:
        client.sendall(GOOD)

        assert rest(client).startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_does_not_read_is_cut_off(monkeypatch, caplog):
    """The rest of the answer is dropped; this is not logged as an error."""
    monkeypatch.setattr(connections, "SEND_SECONDS", 0.3)
    with serving() as server, connect(server) as client, caplog.at_level(logging.WARNING):
        client.sendall(b"GET /huge HTTP/1.1\r\nHost: x\r\n\r\n")
        eventually(lambda: server.open_connections == 1)
        eventually(lambda: server.open_connections == 0)

        assert len(rest(client)) < len(HUGE)
    assert "" == caplog.text


def test_too_many_connections(caplog):
    """Active connections stay, the longest idle one is closed; if none is idle, the new one is refused."""
    began, go_on = threading.Semaphore(0), threading.Event()

    def slow(_request):
        began.release()
        assert go_on.wait(SECONDS)
        return Response(b"slow")

    routes = {"/slow": Route("slow", slow), "/fast": Route("fast", lambda _: Response(b"fast"))}
    with serving(routes, max_connections=2) as server, connect(server) as busy, connect(server) as idle:
        busy.sendall(b"GET /slow HTTP/1.0\r\n\r\n")
        idle.sendall(b"GET /fast HTTP/1.1\r\nHost: x\r\n\r\n")
        assert began.acquire(timeout=SECONDS)
        assert b"fast" == answered(idle)
        with connect(server) as second:
            second.sendall(b"GET /slow HTTP/1.0\r\n\r\n")
            assert b"" == idle.recv(1)
            assert began.acquire(timeout=SECONDS)
            turned_away, another = exchange(server, b""), exchange(server, b"")
            go_on.set()
            answers = [rest(busy), rest(second)]

    assert turned_away.startswith(b"HTTP/1.1 503 ")
    assert turned_away == another
    assert [("connection limit reached; rejecting clients with 503", 2)] == [
        (record.msg["event"], record.msg["count"]) for record in caplog.records if record.levelno >= logging.WARNING
    ]
    assert turned_away.endswith(b"\r\n\r\ntoo many connections\n")
    assert [True, True] == [answer.endswith(b"slow") for answer in answers]


def test_clients_that_send_little_hold_up_nobody():
    """A hundred of them begin a request and do not end it; the next one is answered, for theirs make room."""
    with serving(max_connections=4) as server:
        slow = [connect(server) for _ in range(100)]
        for client in slow:
            with contextlib.suppress(OSError):
                client.sendall(HEAD)
        answer = exchange(server, GOOD)
        for client in slow:
            client.close()

    assert answer.startswith(b"HTTP/1.1 200 OK")


@st.composite
def nearly_requests(draw):
    """A good request with a few bytes changed, cut out or put in, and pure noise."""
    sent = bytearray(draw(st.sampled_from([GOOD, GOOD * 3, HEAD + b"Content-Length: 3\r\n\r\nabc", LINE, b""])))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(sent)))
        sent[at : at + draw(st.integers(0, 8))] = draw(
            st.binary(max_size=8) | st.sampled_from([b"\r\n", b"\n\r", b": "])
        )
    return bytes(sent)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=nearly_requests())
def test_whatever_is_sent_the_server_answers_on(server, caplog, sent):
    """A whole answer with a status or none at all, no traceback, and the next request is answered."""
    answer = exchange(server, sent)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
    assert exchange(server, GOOD).startswith(b"HTTP/1.1 200 OK")
    assert [] == [record for record in caplog.records if record.levelno >= logging.WARNING]


@given(sizes=st.lists(st.integers(0, 600_000), max_size=6))
def test_blocks_are_the_pieces(sizes):
    """No byte is lost or reordered, and many small pieces become few calls."""
    pieces = [bytes([index]) * size for index, size in enumerate(sizes)]
    made = list(blocks(pieces))

    assert b"".join(pieces) == b"".join(made)
    assert len(made) <= 1 + 3 * sum(size >= 256 * 1024 for size in sizes) + sum(sizes) // (256 * 1024)
    assert all(len(block) < 512 * 1024 for block in made)
