"""Many queues by the import of definitions."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ackscope.errors import BrokerError
from lab.many import definitions, make_queues, names


@pytest.fixture
def broker():
    """Takes definitions; refuses those of quorum queues."""
    imported = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            queues = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queues"]
            refused = any(queue["arguments"]["x-queue-type"] == "quorum" for queue in queues)
            imported.append([queue["name"] for queue in queues])
            self.send_response(400 if refused else 204)
            body = b"no quorum here" if refused else b""
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}", imported
    listening.shutdown()
    thread.join()
    listening.server_close()


def test_names_go_on_where_others_ended():
    """New queues do not collide with existing ones."""
    assert names(3)[2:] + names(1, 3) == ["many-000002", "many-000003"]


def test_queues_are_durable_and_of_one_type():
    """As the broker imports them."""
    (queue,) = definitions(["a"], "stream")["queues"]

    assert {
        "name": "a",
        "vhost": "/",
        "durable": True,
        "auto_delete": False,
        "arguments": {"x-queue-type": "stream"},
    } == queue


def test_many_are_imported_in_several_requests(broker):
    """Each far from the time limits of a broker, all of them in order."""
    url, imported = broker

    make_queues(url, names(6000))

    assert [2500, 2500, 1000] == [len(part) for part in imported]
    assert names(6000) == [name for part in imported for name in part]


def test_an_import_that_is_refused_says_why(broker):
    """With what the broker said."""
    with pytest.raises(BrokerError, match="import of 1 queues failed: 400 no quorum here"):
        make_queues(broker[0], ["a"], "quorum")


def test_an_import_without_a_broker_is_an_error():
    """In one line."""
    with pytest.raises(BrokerError, match="import of 1 queues failed: ConnectionError"):
        make_queues("http://127.0.0.1:1", ["a"])
