"""The stand-in of the Kubernetes API, which `make test` uses, answers what discovery asks as a real one does."""

import json
import re

import pytest
import requests

from tests.kube_api import GROUP, KubeApi, kube_api, rabbitmq
from tests.ship.kube_server import ADMIN

INSIDE = f"{GROUP}/namespaces/rabbits/rabbitmqclusters"
SECRETS = "/api/v1/namespaces/rabbits/secrets"
LABELLED = {"labelSelector": "team=shop"}


class EitherApi:
    """Asks the stand-in or the real one.

    Attributes:
        api: what it asks.
        remove: deletes an object.
        refuse: returns the token of an account without rights.
    """

    def __init__(self, api, token, remove, refuse):
        self.api, self._token, self.remove, self.refuse = api, token, remove, refuse

    def ask(self, path, token=None, **query):
        """The answer to one request."""
        headers = {"Authorization": f"Bearer {token or self._token}"}
        return requests.get(
            self.api.url + path, params=query, headers=headers, verify=str(self.api.ca_file), timeout=30
        )

    def page(self, **query):
        """Version, token of the next page, and names of the objects of a list."""
        document = self.ask(INSIDE, **query).json()
        metadata = document["metadata"]

        assert ("rabbitmq.com/v1beta1", "RabbitmqClusterList") == (document["apiVersion"], document["kind"])

        names = [it["metadata"]["name"] for it in document["items"]]
        return metadata["resourceVersion"], metadata["continue"], names

    def watch(self, version, seconds=1, **query):
        """The events of a watch, and the status of its answer."""
        more = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": seconds}
        answer = self.ask(INSIDE, **query, **more)
        return [json.loads(line) for line in answer.text.splitlines() if line], answer.status_code


@pytest.fixture(params=["stand-in", "real"])
def client(request, tmp_path):
    """Each of them, with two clusters and a secret."""
    if request.param == "real":
        kube = request.getfixturevalue("kube")
        yield filled(EitherApi(kube, ADMIN, kube.remove, lambda: kube.token("default", "nobody")))
        kube.clear()
        return
    with kube_api(tmp_path / "kube") as api:

        def refuse():
            api.refused = {"secrets", "rabbitmqclusters"}
            return "one"

        yield filled(EitherApi(api, "one", api.delete, refuse))


def filled(client):
    """The same with its objects."""
    client.api.secret("rabbits", "shop-default-user", username="u", password="p")
    for name in ("shop", "depot"):
        client.api.put(rabbitmq("rabbits", name, labels={"team": name}))
    return client


def brief(event):
    """What discovery takes from an event."""
    metadata = event["object"]["metadata"]
    return event["type"], metadata.get("name"), metadata.get("labels", {}).get("team")


def test_objects_are_told_as_they_change(client):
    """Versions grow; what loses the label of the selector is deleted for that watch, and shown as it was."""
    version, _, names = client.page()
    client.api.put(rabbitmq("rabbits", "shop", labels={"team": "none"}))
    client.api.put(rabbitmq("rabbits", "depot", labels={"team": "shop"}))
    client.remove("rabbits", "depot")
    every, status = client.watch(version)
    labelled, _ = client.watch(version, **LABELLED)
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in every]

    assert ["depot", "shop"] == names
    assert 200 == status
    assert sorted(set(versions)) == versions
    assert versions[0] > int(version)
    assert ("MODIFIED", "shop", "none") == brief(every[0])
    assert ("DELETED", "depot", "shop") == brief(every[-1])
    assert ("DELETED", "shop", "shop") == brief(labelled[0])
    assert int(labelled[0]["object"]["metadata"]["resourceVersion"]) == versions[0]
    assert ("ADDED", "depot", "shop") == brief(labelled[1])
    assert ("DELETED", "depot", "shop") == brief(labelled[-1])


def test_an_object_has_what_discovery_reads(client):
    """Under the same names; the definition of the operator keeps all of it."""
    (item,) = (it for it in client.ask(INSIDE).json()["items"] if it["metadata"]["name"] == "shop")
    made = rabbitmq("rabbits", "shop")

    assert (made["apiVersion"], made["kind"]) == (item["apiVersion"], item["kind"])
    assert made["status"] == item["status"]
    assert made["spec"].items() <= item["spec"].items()
    assert item["metadata"]["creationTimestamp"].endswith("Z")


def test_pages_are_of_one_version(client):
    """What is created meanwhile is in none of them. A token that is damaged is a bad request."""
    client.api.put(rabbitmq("rabbits", "last"))
    first, token, names = client.page(limit=2)
    client.api.put(rabbitmq("rabbits", "nearly"))
    second, end, rest = client.page(limit=2, **{"continue": token})

    assert (["depot", "last"], ["shop"], "") == (names, rest, end)
    assert first == second
    assert 400 == client.ask(INSIDE, limit=2, **{"continue": "?"}).status_code


def test_a_quiet_watch_ends_by_itself(client):
    """Without an event, nor a bookmark if it was short."""
    assert ([], 200) == client.watch(client.page()[0])


def test_refusals_are_alike(client):
    """Status and words; an API that is not installed has no document."""
    missing, secret = f"{SECRETS}/nothing", client.ask(f"{SECRETS}/shop-default-user").json()
    unknown, absent, token = client.ask("/apis/none.com/v1/things"), client.ask(missing), client.refuse()
    wrong = client.ask(INSIDE, token="wrong")
    refused = [client.ask(path, token=token) for path in (INSIDE, f"{GROUP}/rabbitmqclusters", missing)]
    refused.append(client.ask(INSIDE, token=token, watch="true"))
    documents = [answer.json() for answer in (absent, wrong, *refused)]
    cluster, words = (
        "rabbitmqclusters.rabbitmq.com is forbidden",
        'resource "rabbitmqclusters" in API group "rabbitmq.com"',
    )

    assert {"username": "dQ==", "password": "cA=="} == secret["data"]
    assert (404, "404 page not found\n") == (unknown.status_code, unknown.text)
    assert [404, 401, 403, 403, 403, 403] == [it["code"] for it in documents]
    assert [404, 401] + [403] * 4 == [answer.status_code for answer in (absent, wrong, *refused)]
    assert {("Status", "v1", "Failure")} == {(it["kind"], it["apiVersion"], it["status"]) for it in documents}
    assert ["NotFound", "Unauthorized"] + ["Forbidden"] * 4 == [it["reason"] for it in documents]
    assert [
        'secrets "nothing" not found',
        "Unauthorized",
        f'{cluster}: cannot list {words} in the namespace "rabbits"',
        f"{cluster}: cannot list {words} at the cluster scope",
        'secrets "nothing" is forbidden: cannot get resource "secrets" in API group "" in the namespace "rabbits"',
        f'{cluster}: cannot watch {words} in the namespace "rabbits"',
    ] == [re.sub(r'User "system:serviceaccount:\w+:\w+" ', "", it["message"]) for it in documents]


def test_an_expired_version_is_an_event(client):
    """Of a watch that was answered with 200, as the only one."""
    if isinstance(client.api, KubeApi):
        client.api.compact()
    events, status = client.watch("1")
    status_object = events[0]["object"]

    assert (200, 1, "ERROR") == (status, len(events), events[0]["type"])
    assert ("Status", 410, "Expired") == (status_object["kind"], status_object["code"], status_object["reason"])
    assert status_object["message"].startswith("too old resource version: 1 (")
