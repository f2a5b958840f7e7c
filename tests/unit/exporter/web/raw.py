"""A server on a free port, and a client that sends arbitrary bytes."""

import http.client
import socket
from contextlib import contextmanager

from exporter.web.http import JSON, Response, Route
from exporter.web.server import HttpServer

LONG = b"ackscope " * 1000
HUGE = b"x" * (64 * 1024 * 1024)
SECONDS = 10


def fail(_request):
    """A route with a defect."""
    raise ZeroDivisionError


def requested(request):
    """A route that returns its request."""
    reported = f"{request.method} {sorted(request.query.items())} {request.headers.get('x-more')}"
    return Response(reported.encode())


ROUTES = {
    "/short": Route("a few bytes", lambda _: Response(b"{}", JSON)),
    "/long": Route("many bytes", lambda _: Response(LONG)),
    "/huge": Route("more than a socket holds", lambda _: Response(b"", chunks=(HUGE,), content_encoding="identity")),
    "/broken": Route("a defect", fail),
    "/asked": Route("what was asked", requested),
    "/do": Route("does something", requested, methods=("POST",)),
}


@contextmanager
def serving(routes=None, host="127.0.0.1", **chunks):
    """Yields a server that answers."""
    server = HttpServer((host, 0), ROUTES if routes is None else routes, allowed_hosts=("x",), **chunks)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def connect(server):
    """A connection to it."""
    port = int(server.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)


def answered(client):
    """Return the body of the next answer on a connection."""
    answer = http.client.HTTPResponse(client)
    answer.begin()
    return answer.read()


def rest(client):
    """Return everything until the server closes the connection."""
    received = bytearray()
    while True:
        try:
            got = client.recv(1 << 16)
        except ConnectionResetError:
            return bytes(received)
        if not got:
            return bytes(received)
        received += got


def exchange(server, sent):
    """Send bytes, say that there will be no more, and return the answer."""
    with connect(server) as client:
        try:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
        except OSError:  # it may have ended the connection already
            pass
        return rest(client)
