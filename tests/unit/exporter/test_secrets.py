"""Secrets planted in twenty places of one exporter: none of them is found in anything that it shows, logs or writes."""

import base64
import io
import json
import logging
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import bcrypt
import orjson
import pytest
import requests

from ackscope.clock import SystemClock
from ackscope.errors import AckscopeError
from ackscope.log import setup_logging
from ackscope.settings import load
from exporter.app import App
from exporter.settings import ExporterSettings
from tests.unit.exporter.made import eventually

MARK = "pl4nted"
PLACES = (
    "management url", "management file", "environment", "amqp url", "amqp password", "module password", "web login",
    "wrong login", "receiver url", "receiver key", "receiver token", "broker error body", "broker header",
    "shovel uri", "request referer", "policy definition", "query", "request header", "request cookie", "request body",
)  # fmt: skip


def planted(place):
    """The secret of a place."""
    return f"{MARK}{PLACES.index(place):02d}"


class _Broker(BaseHTTPRequestHandler):
    """A management API that answers with secrets: some paths with data, others with an error."""

    def do_GET(self):
        documents = {
            "/api/overview": {"rabbitmq_version": "4.3.6", "cluster_name": "shop", "statistics_db_nodes": []},
            "/api/queues": [
                {
                    "name": "orders",
                    "vhost": "/",
                    "messages": 1,
                    "arguments": {},
                }
            ],
            "/api/policies": [
                {
                    "name": "mirror",
                    "vhost": "/",
                    "pattern": ".*",
                    "definition": {"federation-password": planted("policy definition")},
                }
            ],
            "/api/shovels": [
                {
                    "name": "move",
                    "vhost": "/",
                    "type": "dynamic",
                    "node": "rabbit@one",
                    "state": "terminated",
                    "reason": f"cannot connect to amqp://mover:{planted('shovel uri')}@far:5672",
                    "src_uri": f"amqp://mover:{planted('shovel uri')}@far:5672",
                }
            ],
        }
        document = documents.get(self.path.partition("?")[0])
        if document is not None and "page=" in self.path:
            counts = dict.fromkeys(("filtered_count", "item_count", "total_count", "page", "page_count"), 1)
            document = {**counts, "page_size": 500, "items": document}
        error = {"error": "bad", "reason": f"http://a:{planted('broker error body')}@b is down"}
        body = orjson.dumps(error if document is None else document)
        self.send_response(500 if document is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", planted("broker header"))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def broker():
    """The port of that broker."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Broker)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def log():
    """What an exporter writes to its log, at the most talkative level."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    setup_logging("debug")
    written = root.handlers[0].stream = io.StringIO()
    yield written
    root.handlers[:] = before
    root.setLevel(level)


def settings(folder, port):
    """Settings with a secret wherever one can be."""
    (folder / "management").write_text(planted("management file") + "\n")
    (folder / "token").write_text(planted("receiver token") + "\n")
    hashed = bcrypt.hashpw(planted("web login").encode(), bcrypt.gensalt(4)).decode()
    (folder / "web.yml").write_text(f"basic_auth_users: {{ann: '{hashed}'}}\n")
    document = {
        "listen": "127.0.0.1:0",
        "web_config": str(folder / "web.yml"),
        "clusters": {
            "url": {
                "management": {"url": f"http://mon:{planted('management url')}@127.0.0.1:{port}"},
                "amqp": {"url": f"amqp://probe:{planted('amqp url')}@127.0.0.1:1"},
            },
            "file": {
                "management": {
                    "url": f"http://127.0.0.1:{port}",
                    "username": "mon",
                    "password_file": str(folder / "management"),
                },
                "amqp": {"url": "amqp://127.0.0.1:1", "username": "p", "password": planted("amqp password")},
            },
            "env": {"management": {"url": f"http://127.0.0.1:{port}", "username": "mon"}},
        },
        "modules": {
            "plain": {"targets": [f"127.0.0.1:{port}"], "username": "m", "password": planted("module password")}
        },
        "probes": {"enabled": []},
        "landing": {"directory": str(folder / "landing")},
        "delivery": {
            "receivers": {
                "hook": {
                    "webhook": {
                        "url": f"http://127.0.0.1:1/{planted('receiver url')}",
                        "secret": planted("receiver key"),
                        "token_file": str(folder / "token"),
                    }
                }
            }
        },
    }
    path = folder / "ackscope.yml"
    path.write_text(json.dumps(document))
    return load(ExporterSettings, path, {"ACKSCOPE_CLUSTERS__ENV__MANAGEMENT__PASSWORD": planted("environment")})


PATHS = (
    "/", "/metrics", "/api/v1/findings", "/api/v1/triage", "/api/v1/probes", "/api/v1/vitals", "/api/v1/snapshot",
    "/api/v1/columns?cluster=url&list=queues", "/api/v1/queue?cluster=url&queue=orders",
    "/api/v1/series?cluster=url&kind=queue&vhost=/&name=orders", "/api/v1/openapi.json", "/runbook",
    "/-/healthy", "/-/ready",
)  # fmt: skip


def shown_by(exporter, port):
    """Everything that the exporter answers to whoever may ask it, to whoever may not, and to wrong requests."""
    session = requests.Session()
    session.auth = ("ann", planted("web login"))
    eventually(lambda: session.get(f"{exporter.url}/-/ready", timeout=10).status_code == 200)
    answers = [session.get(exporter.url + path, timeout=10) for path in PATHS]
    answers += [session.get(f"{exporter.url}/metrics", headers={"Accept": "application/openmetrics-text"}, timeout=10)]
    bundles = [session.get(f"{exporter.url}/api/v1/bundle?cluster={name}", timeout=30) for name in ("url", "file")]
    probe = f"{exporter.url}/probe?module=plain&target="
    answers += [session.get(probe + target, timeout=20) for target in (f"127.0.0.1:{port}", "127.0.0.1:2")]
    answers += [session.get(f"{exporter.url}/api/v1/findings?cluster=nobody", timeout=10)]
    answers += [requests.get(exporter.url + "/metrics", auth=("ann", planted("wrong login")), timeout=10)]
    answers += [session.get(f"{exporter.url}/-/healthy?x={planted('query')}", timeout=10)]
    answers += [
        session.get(
            f"{exporter.url}/-/healthy",
            headers={
                "X-Token": planted("request header"),
                "Cookie": planted("request cookie"),
                "Referer": planted("request referer"),
            },
            timeout=10,
        )
    ]
    body = orjson.dumps({"cluster": "url", "by": {"password": planted("request body")}})
    answers += [
        session.post(f"{exporter.url}/api/v1/triage", body, headers={"Content-Type": "application/json"}, timeout=10)
    ]
    answers += [session.post(f"{exporter.url}/-/reload", timeout=30)]
    texts = [f"{answer.url.partition('?')[0]} {answer.headers} {answer.text}" for answer in answers]
    assert [200, 200] == [bundle.status_code for bundle in bundles]
    return texts + [zlib.decompress(bundle.content, wbits=31).decode() for bundle in bundles]


def reported_of(folder, port, **changes):
    """The error of settings with a mistake."""
    document = json.loads((folder / "ackscope.yml").read_text())
    path = folder / "wrong.yml"
    path.write_text(json.dumps({**document, **changes}))
    with pytest.raises(AckscopeError) as raised:
        load(ExporterSettings, path, {})
    return str(raised.value)


def test_secrets_of_twenty_places_are_found_nowhere(tmp_path, broker, log):
    """Not in logs, metrics, API, bundles, landing files, errors, nor in the settings as text."""
    known = settings(tmp_path, broker)
    exporter = App(known, SystemClock())
    exporter.start()
    try:
        shown = shown_by(exporter, broker)
    finally:
        exporter.stop()
    shown += [log.getvalue(), repr(known), str(known)]
    shown += [path.read_bytes().decode("latin-1") for path in (tmp_path / "landing").rglob("*") if path.is_file()]
    broken = f"http://mon:{planted('management url')}@127.0.0.1:port"
    shown += [
        reported_of(tmp_path, broker, clusters={"a": {"management": {"url": broken}}}),
        reported_of(tmp_path, broker, clusters={"a": {"management": {"url": broken.replace("pl4", "p/l4")}}}),
        reported_of(tmp_path, broker, modules={"m": {"password": planted("module password")}}),
    ]
    forms = {place: (planted(place), base64.b64encode(planted(place).encode()).decode()) for place in PLACES}

    assert 20 <= len(PLACES)
    assert [] == [
        (place, text[:60], text[max(0, text.find(form) - 60) : text.find(form) + 20])
        for place, both in forms.items()
        for form in both
        for text in shown
        if form in text
    ]
    assert "cluster" in log.getvalue()
