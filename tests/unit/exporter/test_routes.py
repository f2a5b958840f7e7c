from http import HTTPStatus

import orjson
import pytest

from exporter.routes import RouteContext, make_routes
from exporter.runtime.reloader import ReloadResult
from exporter.runtime.state import StateStore
from exporter.web.http import Request, Response
from tests.unit.exporter.made import SetClock, small


class Page:
    """Stands for the text of `/metrics`."""

    answers_at_once = None

    @staticmethod
    def respond(_):
        """Return one line."""
        return Response(b"up 1\n")


def requested(path, reloaded=None, **query):
    """Status and body of a path of two clusters."""
    state = StateStore(["shop", "depot"])
    for name in ("shop", "depot"):
        state.put_snapshot(small(name))
    parts = RouteContext(
        state=state,
        exposition=Page(),
        status=lambda: None,
        probe_page=lambda request: Response(request.query["probe"].encode()),
        reload=lambda: reloaded,
        clock=SetClock(),
    )
    answer = make_routes(parts)[path].handle(Request(query))
    return answer.status, answer.body


@pytest.mark.parametrize("page", ["findings", "probes", "snapshot", "vitals"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [({}, ["shop", "depot"]), ({"cluster": "depot"}, ["depot"]), ({"cluster": "depot,shop"}, ["shop", "depot"])],
)
def test_every_document_can_be_had_of_one_cluster(page, query, expected):
    """Without a name, of all."""
    status, body = requested(f"/api/v1/{page}", **query)

    assert (HTTPStatus.OK, expected) == (status, [entry["cluster"] for entry in orjson.loads(body)["clusters"]])


def test_a_snapshot_can_be_had_in_part():
    """The families that are named."""
    _, body = requested("/api/v1/snapshot", cluster="shop", families="queues,nodes")
    (entry,) = orjson.loads(body)["clusters"]

    assert {"queues", "nodes"} == entry["ages"].keys()
    assert "overview" not in entry


@pytest.mark.parametrize("page", ["findings", "probes", "snapshot", "vitals"])
def test_a_cluster_that_there_is_not_is_reported(page):
    """In a line, with those that there are."""
    expected = (HTTPStatus.BAD_REQUEST, b"cluster='shap' is not known, did you mean 'shop'?; known: shop, depot\n")

    assert expected == requested(f"/api/v1/{page}", cluster="shap")


def test_a_family_that_there_is_not_is_reported():
    """With all that there are."""
    status, body = requested("/api/v1/snapshot", families="queue")

    assert HTTPStatus.BAD_REQUEST == status
    assert body.startswith(b"families='queue' is not known, did you mean 'queues'?; known: overview, nodes, queues, ")


@pytest.mark.parametrize(("ok", "status"), [(True, HTTPStatus.OK), (False, HTTPStatus.INTERNAL_SERVER_ERROR)])
def test_a_reload_answers_with_its_line(ok, status):
    """The status tells a script how it went."""
    assert (status, b"the line\n") == requested("/-/reload", ReloadResult(ok=ok, line="the line"))


def test_reload_and_triage_alone_can_be_posted():
    """All other paths are read-only."""
    parts = RouteContext(
        state=StateStore([]), exposition=Page(), status=None, probe_page=None, reload=None, clock=SetClock()
    )
    routes = make_routes(parts)

    assert {"/-/reload", "/api/v1/triage"} == {path for path, route in routes.items() if "POST" in route.methods}
    assert ("POST",) == routes["/-/reload"].methods
