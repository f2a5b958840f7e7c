"""The OpenAPI document against the real responses of an exporter, with made-up requests of schemathesis."""

import json

import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi import checks as conformance

from exporter.api.openapi import OPERATIONS
from exporter.triage.store import TriageStore
from tests.unit.exporter.made import SetClock, confirming, outcome
from tests.unit.exporter.mcp_server.asked import TEN, serve, state_of

FAULTS = {name: TEN[name] for name in ("stuck-consumer", "node-down", "quorum-queue-minority")}


@pytest.fixture(scope="module")
def exporter(tmp_path_factory):
    """An exporter with faults, probe results and a file for triage."""
    states, clock = state_of(FAULTS), SetClock()
    states.put_outcomes("node-down", [outcome(), confirming("quorum", 0.002)], clock.now())
    store = TriageStore(tmp_path_factory.mktemp("triage") / "triage.json", FAULTS)
    server = serve(states, clock, triage=store)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def document(exporter):
    """The document."""
    return requests.get(f"{exporter.url}/api/v1/openapi.json", timeout=10).json()


@pytest.fixture(scope="module")
def api(exporter):
    """The document, as schemathesis reads it."""
    return schemathesis.openapi.from_url(f"{exporter.url}/api/v1/openapi.json")


CHECKS = [
    schemathesis.checks.not_a_server_error,
    *(
        getattr(conformance, name)
        for name in ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
    ),
]


@pytest.mark.parametrize(
    ("path", "method"), [*((path, "GET") for path in OPERATIONS), ("/api/v1/triage", "POST")], ids=" ".join
)
def test_responses_are_as_documented(api, path, method):
    """Status, content type and document, whatever the parameters are."""

    @given(case=api[path][method].as_strategy())
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    def answers(case):
        case.call_and_validate(checks=CHECKS)

    answers()


REAL = [
    "/api/v1/findings",
    "/api/v1/triage",
    "/api/v1/probes",
    "/api/v1/vitals",
    "/api/v1/snapshot",
    "/api/v1/series?cluster=stuck-consumer&kind=queue&vhost=/&name=orders",
    "/api/v1/columns?cluster=stuck-consumer&list=queues",
    '/api/v1/trends?cluster=stuck-consumer&list=queues&objects=[["/","orders"]]',
    "/api/v1/queue?cluster=stuck-consumer&vhost=/&queue=orders",
]


@pytest.mark.parametrize("path", REAL)
def test_documents_with_content_are_as_documented(exporter, document, path):
    """Those that made-up names do not reach."""
    found = requests.get(f"{exporter.url}{path}", timeout=10)
    declared = document["paths"][path.partition("?")[0]]["get"]["responses"]["200"]["content"]["application/json"]
    whole = {**declared["schema"], "components": document["components"]}
    jsonschema.Draft202012Validator(whole).validate(found.json())

    assert len(found.content) > 100


def test_a_change_of_triage_is_as_documented(exporter, document):
    """Request and response."""
    subject = {"kind": "queue", "vhost": "/", "name": "orders"}
    body = {"cluster": "stuck-consumer", "rule": "stuck-consumer", "subject": subject, "by": "ann", "mute_seconds": 60}
    done = requests.post(f"{exporter.url}/api/v1/triage", json=body, timeout=10)
    operation, parts = document["paths"]["/api/v1/triage"]["post"], {"components": document["components"]}
    for value, content in (
        (body, operation["requestBody"]["content"]),
        (done.json(), operation["responses"]["200"]["content"]),
    ):
        jsonschema.Draft202012Validator({**content["application/json"]["schema"], **parts}).validate(value)

    assert 200 == done.status_code


def test_every_path_of_the_api_is_documented(document):
    """A new one needs an entry in `OPERATIONS`."""
    served = {path for path in document["paths"] if path.startswith("/api/")}

    assert {path for path in OPERATIONS if path.startswith("/api/")} == served
    assert json.dumps(document).count('"operationId"') == len(OPERATIONS) + 1
