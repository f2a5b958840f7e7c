"""An exporter without a broker: its routes, one finding, a clock that tests set."""

import orjson

from exporter.routes import RouteContext, make_routes
from exporter.runtime.state import StateStore
from exporter.triage.store import TriageStore
from exporter.web.http import JSON, Request
from tests.unit.exporter.made import NOW, SetClock, Verdicts, finding, small

JSON_HEADERS = {"content-type": JSON}


class _NoMetrics:
    respond = answers_at_once = None


class Served:
    """The routes of an exporter with one finding in `shop`, and its clock."""

    def __init__(self, path):
        self.clock = SetClock()
        state = StateStore(["shop", "depot"])
        for name in ("shop", "depot"):
            state.put_snapshot(small(name))
        state.put_verdict(Verdicts(findings=(finding(),)).of("shop"), 0.1, NOW)
        self.routes = make_routes(
            RouteContext(
                state=state,
                exposition=_NoMetrics(),
                status=lambda: None,
                probe_page=None,
                reload=None,
                clock=self.clock,
                triage=TriageStore(path, ["shop", "depot"]),
            )
        )

    def get(self, path, **query):
        """The document of a path."""
        return orjson.loads(self.routes[path].handle(Request(query)).body)

    def post(self, headers=JSON_HEADERS, body=None, **values):
        """Status and text of a change."""
        subject = {"kind": "queue", "vhost": "/", "name": finding().subject.name}
        document = {"cluster": "shop", "rule": "no-consumer", "subject": subject, **values}
        content = orjson.dumps(document) if body is None else body
        answer = self.routes["/api/v1/triage"].handle(Request({}, headers, "POST", content))
        return answer.status, answer.body.decode()

    def found(self):
        """The finding of `shop`, as the API shows it."""
        (entry,) = self.get("/api/v1/findings", cluster="shop")["clusters"][0]["findings"]
        return entry
