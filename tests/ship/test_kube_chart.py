"""The chart and the manifests on a real Kubernetes API: what it accepts, and what their account may do."""

import copy

import pytest
import yaml

from tests.ship.kube_server import CLUSTERS
from tests.ship.running import ROOT
from tests.ship.test_chart import CHART, SETS, render

MANIFESTS = sorted((ROOT / "deploy/kubernetes").glob("ackscope*.yaml"))


def objects(path):
    """The objects of a set of values, or of a manifest, and the namespace that they are for."""
    if path in SETS:
        return "rabbits", render(path)
    return "ackscope", [each for each in yaml.safe_load_all(path.read_text()) if each]


@pytest.mark.parametrize("path", [*SETS, *MANIFESTS], ids=lambda path: path.stem)
def test_the_api_server_would_accept_every_object(kube, path):
    """A dry run on the server, with defaults, admission and validation; a field that it does not know is an error."""
    namespace, found = objects(path)
    answers = [kube.apply(each, namespace, dryRun="All") for each in found]

    assert len(found) > 3
    assert [] == [answer.text for answer in answers if not answer.ok]


@pytest.mark.parametrize("kind", ["Deployment", "PrometheusRule"])
def test_the_api_server_refuses_a_field_that_it_does_not_know(kube, kind):
    """Or the test above could not fail."""
    _, found = objects(CHART / "ci/monitored-values.yaml")
    wrong = copy.deepcopy(next(each for each in found if each["kind"] == kind))
    wrong["spec"]["wrong"] = 1
    answer = kube.apply(wrong, "rabbits", dryRun="All")

    assert not answer.ok
    assert ".spec.wrong: field not declared in schema" in answer.text


@pytest.fixture
def applied(kube):
    """Applies accounts and rights of a set of values for the time of the test; returns the account and its token."""
    made = []

    def apply(path):
        namespace, found = objects(path)
        made.extend((each, namespace) for each in found if each["kind"] == "ServiceAccount" or "Role" in each["kind"])
        for each, _ in made:
            answer = kube.apply(each, namespace)

            assert answer.ok, answer.text

        account = next(each for each, _ in made if each["kind"] == "ServiceAccount")
        return kube.token(namespace, account["metadata"]["name"])

    yield apply
    for each, namespace in made:
        kube.call("DELETE", kube.path(each, namespace))


def rights(kube, token, namespace):
    """What the API server says that an account may do, less what every account may."""
    review, found = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", []
    for each in (token, kube.token("default", "nobody")):
        status = kube.call("POST", review, {"spec": {"namespace": namespace}}, token=each)["status"]

        assert not status["incomplete"]

        found.append(
            {
                (group, resource, verb, *rule.get("resourceNames", ()))
                for rule in status["resourceRules"]
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
            }
        )
    return found[0] - found[1]


NEEDED = {("rabbitmq.com", "rabbitmqclusters", verb) for verb in ("get", "list", "watch")} | {("", "secrets", "get")}


@pytest.mark.parametrize(
    ("path", "namespaces"),
    [
        (MANIFESTS[0], {"rabbits"}),
        (CHART / "ci/discovery-values.yaml", {"rabbits", "depots"}),
        (CHART / "ci/discovery-everywhere-values.yaml", {"rabbits", "depots", "ackscope", "default", "kube-system"}),
        (CHART / "ci/minimal-values.yaml", set()),
    ],
    ids=["manifest", "namespaces", "everywhere", "no discovery"],
)
def test_the_account_may_do_what_discovery_needs_and_nothing_else(kube, applied, path, namespaces):
    """By the API server's own list of its rights in each namespace."""
    token = applied(path)
    everywhere = {"rabbits", "depots", "ackscope", "default", "kube-system"}
    found = {namespace: rights(kube, token, namespace) for namespace in everywhere}

    assert {namespace: NEEDED if namespace in namespaces else set() for namespace in everywhere} == found


def test_what_the_account_may_not_do_is_refused(kube, applied):
    """Requests, not a review: 403 for other verbs, resources and namespaces."""
    token = applied(MANIFESTS[0])
    kube.secret("rabbits", "shop-default-user", username="u", password="p")
    kube.secret("depots", "depot-default-user", username="u", password="p")
    near, far = (f"{CLUSTERS}/namespaces/{name}/rabbitmqclusters" for name in ("rabbits", "depots"))
    core = "/api/v1/namespaces/rabbits"
    version = kube.call("GET", near)["metadata"]["resourceVersion"]
    allowed = [
        ("GET", near),
        ("GET", f"{near}?watch=true&timeoutSeconds=1&resourceVersion={version}"),
        ("GET", f"{core}/secrets/shop-default-user"),
    ]
    refused = [
        *(("GET", path) for path in (far, f"{far}?watch=true", f"{CLUSTERS}/rabbitmqclusters")),
        *(("GET", path) for path in (f"{core}/secrets", f"{core}/secrets?watch=true", "/api/v1/secrets")),
        ("GET", "/api/v1/namespaces/depots/secrets/depot-default-user"),
        ("GET", "/api/v1/namespaces/ackscope/secrets/any"),
        *(("GET", f"{core}/{name}") for name in ("pods", "configmaps", "services", "serviceaccounts")),
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api/v1/nodes"),
        ("POST", near),
        *((verb, f"{near}/shop") for verb in ("PATCH", "DELETE")),
        ("PATCH", f"{near}/shop/status"),
        ("DELETE", near),
        ("POST", f"{core}/secrets"),
        *((verb, f"{core}/secrets/shop-default-user") for verb in ("PATCH", "DELETE")),
        ("POST", "/api/v1/namespaces/ackscope/serviceaccounts/ackscope/token"),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/rabbits/rolebindings"),
    ]

    def status(method, path):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return kube.ask(method, path, None if method == "GET" else {}, token=token, kind=kind).status_code

    assert {200} == {status(*each) for each in allowed}
    assert [] == [each for each in refused if status(*each) != 403]
