"""A real HTTP receiver on loopback, which can be away for a while, and what feeds a worker in tests."""

import json
import threading
import time
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from diagnosis.text import Cluster
from exporter.delivery.delivery import make_receiver
from exporter.delivery.incidents import IncidentRecord
from exporter.delivery.settings import ReceiverSettings, RouteSettings
from exporter.delivery.worker import DeliveryWorker
from tests.unit.exporter.made import SetClock, Verdicts


class HttpReceiver:
    """What arrived, in order; `status` is what it answers, and its clock is `ahead` by so many seconds."""

    def __init__(self):
        self.ahead = 0.0
        self.status, self.answer_headers = 200, {}
        self.arrived, self.headers = [], []
        self._server, self.port = None, 0
        self.up()

    @property
    def url(self):
        """Its address."""
        return f"http://127.0.0.1:{self.port}/hook"

    def up(self):
        """Listen, on the port of the first time."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if outer.status < 300:
                    outer.headers.append((dict(self.headers), body))
                    outer.arrived.append(json.loads(body))
                self.send_response(outer.status)
                for name, value in outer.answer_headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def date_time_string(self, timestamp=None):
                return formatdate((timestamp or time.time()) + outer.ahead, usegmt=True)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def away(self):
        """Close the port."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def events(self):
        """(event, rule or name) of everything that arrived, in order."""
        return [
            (event["event"], event["finding"]["subject"]["name"]) for each in self.arrived for event in each["events"]
        ]


@contextmanager
def receiving():
    """A receiver for as long as the block runs."""
    receiver = HttpReceiver()
    try:
        yield receiver
    finally:
        receiver.away()


class Fed:
    """A worker without its thread, whose diagnoses and clock a test sets."""

    def __init__(self, destination, path=None, settle=60.0, clock=None, incidents=(), **settings):
        self.clock = clock or SetClock()
        chosen = ReceiverSettings(**destination, **settings)
        routes = (RouteSettings(receiver="r"),)
        self.record = IncidentRecord(chosen, routes, settle, incidents, self.clock.now())
        self.worker = DeliveryWorker(
            "r",
            make_receiver(chosen, "https://ackscope.example", self.clock),
            self.record,
            path=path,
            address="here",
            cluster_of=lambda _: Cluster(),
            external_url="https://ackscope.example",
            clock=self.clock,
        )

    def diagnosed(self, *findings, later=1.0, triage=None, inconclusive=()):
        """A diagnosis with these findings, some seconds later, and one step of the worker."""
        self.clock.mono += later
        self.worker.observe(Verdicts(findings=findings, inconclusive=inconclusive).of("shop"), triage or {})
        return self.worker.step()
