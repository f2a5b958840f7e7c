import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ackscope.address import parse_amqp, parse_management
from ackscope.errors import BadAnswer, Refused, Unreachable
from lab.verify.manage import HttpManage
from probes.settings import AmqpServer

ANSWERS = {
    "/api/queues/a%2Fb/q.1": (200, json.dumps({"messages_unacknowledged": 5})),
    "/api/queues/a%2Fb/forbidden": (401, "{}"),
    "/api/queues/a%2Fb/odd": (200, "<html>"),
    "/api/queues/a%2Fb/down": (503, "{}"),
}


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        code, text = ANSWERS.get(self.path, (404, "{}"))
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def api():
    """The API of a server that answers as above."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = parse_management(f"http://u:secret@127.0.0.1:{server.server_port}")
        yield HttpManage(address, AmqpServer(parse_amqp("amqp://h/a%2Fb")))
        server.shutdown()


def test_a_queue_is_found_by_its_vhost_and_name(api):
    """Both written as the API wants them; one that is not there is None."""
    assert {"messages_unacknowledged": 5} == asyncio.run(api.queue("q.1"))
    assert None is asyncio.run(api.queue("none"))


@pytest.mark.parametrize(("name", "error"), [("forbidden", Refused), ("odd", BadAnswer), ("down", BadAnswer)])
def test_other_answers_are_errors_of_the_broker(api, name, error):
    """Reported without the password."""
    with pytest.raises(error) as caught:
        asyncio.run(api.queue(name))

    assert "secret" not in str(caught.value)


def test_no_answer_at_all():
    """The row then reports that there was no answer."""
    nobody = HttpManage(parse_management("http://127.0.0.1:1"), AmqpServer(parse_amqp("amqp://h")))

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1: no response from the management API"):
        asyncio.run(nobody.queue("q"))
