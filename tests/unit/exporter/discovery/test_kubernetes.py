"""Discovery beside the stand-in of the Kubernetes API."""

import re
import time

import pytest

from exporter.api.discovery import discovery_document
from exporter.discovery import object_watch
from exporter.exposition.encode import render
from exporter.exposition.live.discovery import collect
from tests.discovering import discovering, has
from tests.kube_api import STARTING, kube_api, rabbitmq
from tests.unit.exporter.made import NOW, eventually


@pytest.fixture
def api(tmp_path):
    """A Kubernetes API with two clusters in two namespaces."""
    with kube_api(tmp_path / "kube") as api:
        for namespace, name in (("a", "shop"), ("b", "depot")):
            api.put(rabbitmq(namespace, name, labels={"team": namespace}))
            api.secret(namespace, f"{name}-default-user", username=f"user-{name}", password="hush")
        yield api


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Short pauses, so that tests need not wait."""
    monkeypatch.setattr(object_watch, "_BACKOFF", (0.05, 0.2))


def test_clusters_come_and_go_with_their_objects(api, caplog):
    """By one watch; each change is reported once."""
    caplog.set_level("INFO", "exporter.discovery")
    with discovering(api) as running:
        has(running, "shop", "depot")
        api.put(rabbitmq("c", "late", conditions=STARTING, creationTimestamp="2999-01-01T00:00:00Z"))
        eventually(lambda: len(running.status().objects) == 3)
        starting = {it.name: it.reason for it in running.status().objects}
        api.secret("c", "late-default-user", username="u", password="p")
        api.put(rabbitmq("c", "late"))
        has(running, "shop", "depot", "late")
        api.put(rabbitmq("b", "depot", deletionTimestamp="2026-01-01T00:00:00Z"))
        has(running, "shop", "late")
        api.delete("b", "depot")
        eventually(lambda: len(running.status().objects) == 2)
        document = discovery_document(running.status(), NOW)
        asked = (api.lists(), api.watches())

    assert {"shop": None, "depot": None, "late": "starting"} == starting
    assert [2, 3, 2] == [len(it) for it in running.reported]
    assert (1, 1) == asked
    assert {
        "namespace": "a",
        "name": "shop",
        "cluster": "shop",
        "watched": True,
        "reason": None,
        "management": "http://shop.a.svc:15672",
    } == document["objects"][0]
    assert caplog.text.count("'reason': 'starting'") == 1
    assert "hush" not in caplog.text + str(document)


def test_a_new_password_is_used(api):
    """The secret is read again after the interval of the settings."""
    with discovering(api) as running:
        has(running, "shop", "depot")
        api.secret("a", "shop-default-user", username="user-shop", password="new")
        eventually(lambda: running.clusters["shop"].management.address().password == "new")

    assert 2 == len(running.reported)


def test_a_secret_that_is_missing_comes_later(api, caplog):
    """The object has a reason meanwhile; a secret that disappears keeps its last content in use."""
    api._secrets.clear()
    with discovering(api) as running:
        eventually(lambda: {"secret-unreadable"} == {it.reason for it in running.status().objects})
        api.secret("a", "shop-default-user", username="u", password="p")
        has(running, "shop")
        api._secrets.clear()
        failures = running.status().failures
        eventually(lambda: running.status().failures > failures + 2)
        has(running, "shop")
        api.secret("b", "depot-default-user", username="u")
        eventually(lambda: "no text with the key 'password'" in caplog.text)

    assert 'secrets "shop-default-user" not found' in caplog.text


@pytest.mark.parametrize("as_event", [False, True], ids=["status", "event"])
def test_an_expired_version_is_listed_again(api, as_event, caplog):
    """410 is no failure: what happened meanwhile is found by the list."""
    api.gone_as_event = as_event
    with discovering(api) as running:
        has(running, "shop", "depot")
        lists = api.lists()
        with api._lock:
            api._objects.pop(("b", "depot"))
        api.compact()
        has(running, "shop")
        eventually(lambda: running.status().error is None)

        assert api.lists() > lists
    # Ports and times have these digits, too.
    assert not re.search(r"\b410\b", caplog.text)


def test_a_broken_watch_goes_on_from_its_latest_version(api):
    """Nothing is listed again, nothing is lost, and what is known is not sent again: it would undo what came later."""
    with discovering(api) as running:
        has(running, "shop", "depot")
        eventually(lambda: api.watches() > 0)
        api.delete("b", "depot")
        has(running, "shop")
        api.put(rabbitmq("b", "depot"))
        has(running, "shop", "depot")
        latest = api._version
        api.break_watches()
        eventually(lambda: api.watches() > 1)
        api.delete("b", "depot")
        has(running, "shop")

        assert 1 == api.lists()
        assert any(f"resourceVersion={latest}&" in it for it in api.seen)
    assert [2, 1, 2, 1] == [len(it) for it in running.reported]


def test_a_watch_that_goes_on_is_a_success_without_an_event(api):
    """Objects that do not change have none, and the bookmark comes shortly before the end of the watch."""
    with discovering(api) as running:
        has(running, "shop", "depot")
        eventually(lambda: api.watches() > 0)
        api.break_watches()
        eventually(lambda: running.status().failures == 1)
        eventually(lambda: running.status().error is None)

        assert 1 == api.lists()


def test_a_watch_that_lasted_ends_the_growth_of_pauses(api):
    """Also without an event: a proxy may cut each watch before its bookmark."""
    with discovering(api) as running:
        has(running, "shop", "depot")
        (watch,) = running._watches
        for count in range(1, 4):
            eventually(lambda count=count: api.watches() == count)
            time.sleep(0.1)
            api.break_watches()

        eventually(lambda: running.status().failures == 3)
        assert watch._pause <= 0.1


def test_a_silent_watch_is_followed_by_a_list(api, monkeypatch):
    """Without event and bookmark: its version may be one that is still to come, as after etcd was restored."""
    monkeypatch.setattr(object_watch, "_WATCH_SECONDS", 1)
    with discovering(api) as running:
        has(running, "shop", "depot")
        with api._lock:
            api._version, api._events = 10, []
            api._objects.pop(("b", "depot"))
        has(running, "shop")

        assert 0 == running.status().failures


def test_the_next_watch_begins_at_the_bookmark(api, monkeypatch):
    """Which counts what happened elsewhere: the version does not grow too old while nothing happens here."""
    monkeypatch.setattr(object_watch, "_WATCH_SECONDS", 3)
    with discovering(api, namespaces=["a"]) as running:
        has(running, "shop")
        eventually(lambda: api.watches() == 1)
        api.put(rabbitmq("b", "other"))
        eventually(lambda: any(f"resourceVersion={api._version}&watch" in it for it in api.seen))

        assert (1, 0) == (api.lists(), running.status().failures)


def test_a_token_that_was_replaced_is_read_again(api):
    """Kubernetes replaces them every hour."""
    with discovering(api) as running:
        has(running, "shop", "depot")
        api.token_file.write_text("two\n")
        api.tokens = {"two"}
        api.compact()
        api.delete("b", "depot")
        has(running, "shop")

        assert 0 == sum(it.failures for it in running._watches if "401" in (it.error or ""))


def test_missing_rights_are_reported_and_what_was_found_stays(api, caplog):
    """In the words of the API server, without a password."""
    with discovering(api) as running:
        has(running, "shop", "depot")
        api.refused = {"rabbitmqclusters"}
        api.compact()
        eventually(lambda: "403" in (running.status().error or ""))
        error, text = running.status().error, render(collect(running.status()))
        has(running, "shop", "depot")
        api.refused = set()
        eventually(lambda: running.status().error is None)

    assert "403 (rabbitmqclusters.rabbitmq.com is forbidden" in error
    assert "ackscope_discovery_success 0" in text
    assert 'ackscope_discovered_object{cluster="shop",namespace="a",object="shop",reason=""} 1' in text
    assert "hush" not in caplog.text + text


def test_namespaces_and_labels_limit_what_is_found(api):
    """One list and one watch for each namespace; names are unique among all of them."""
    api.put(rabbitmq("b", "shop"))
    api.secret("b", "shop-default-user", username="u", password="p")
    with discovering(api, namespaces=["a", "b"]) as both:
        has(both, "a.shop", "b.shop", "depot")
    with discovering(api, namespaces=["a"]) as one:
        has(one, "shop")
    with discovering(api, label_selector="team=b") as labelled:
        has(labelled, "depot")

    assert not any(len(it) not in (3, 1) for it in (*both.reported, *one.reported, *labelled.reported))


def test_an_object_that_loses_its_label_goes(api):
    """The API server tells it to a watch with a selector as the end of the object."""
    with discovering(api, label_selector="team=a") as running:
        has(running, "shop")
        api.put(rabbitmq("b", "depot", labels={"team": "a"}))
        has(running, "shop", "depot")
        api.put(rabbitmq("a", "shop", labels={"team": "b"}))
        has(running, "depot")


def test_long_lists_are_read_in_pages(api, monkeypatch):
    """Of one version; there is an upper limit."""
    monkeypatch.setattr(object_watch, "_PAGE", 3)
    for number in range(6):
        api.put(rabbitmq("a", f"q{number}", status={}))
    with discovering(api) as running:
        eventually(lambda: len(running.status().objects) == 8)
        lists = api.lists()
    monkeypatch.setattr(object_watch, "MAX_OBJECTS", 5)
    with discovering(api) as limited:
        eventually(lambda: len(limited.status().objects) == 5)

    assert 3 == lists


def test_an_api_server_that_does_not_answer_is_asked_again(api):
    """With growing pauses; nothing is reported until it answers."""
    with discovering(api, server="https://127.0.0.1:1") as running:
        eventually(lambda: running.status().failures > 2)

        assert "connection refused" in running.status().error
        assert ([], False, None) == (running.reported, running.complete, running.status().age)


def test_a_configured_cluster_is_said_once(api, caplog):
    """One warning, however often the objects are judged again."""
    with discovering(api, configured={"shop"}) as running:
        has(running, "depot")
        running.look_again()
        api.put(rabbitmq("a", "shop", spec={"replicas": 3}))
        eventually(lambda: len(running.status().objects) == 2)
        eventually(lambda: sum("secrets" in it for it in api.seen) > 4)

    assert 1 == caplog.text.count("'reason': 'configured'")
