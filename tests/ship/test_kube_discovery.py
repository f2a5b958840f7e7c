"""Discovery on a real Kubernetes API, with a token that has the rights of the manifests and no others."""

import re
import threading
import time
from urllib.parse import urlsplit

import pytest
import yaml

from exporter.discovery import object_watch
from exporter.discovery.object_watch import ObjectWatch
from lab.network_link import LinkState, NetworkLink
from tests.discovering import discovering, has
from tests.integration.exporter.discovering import POLLED, REFUSED, WATCHED, Discovering, Users, name_services
from tests.kube_api import STARTING, rabbitmq
from tests.ship.kube_schemas import definitions
from tests.ship.kube_server import CLUSTERS
from tests.ship.running import ROOT, eventually

MANIFEST = ROOT / "deploy/kubernetes/ackscope-discovery.yaml"
SECRET = "/api/v1/namespaces/rabbits/secrets/shop-default-user"


class Account:
    """The account of the exporter.

    Attributes:
        token_file: where discovery reads its token.
        kube: the API.
    """

    def __init__(self, folder, kube):
        self.kube, self.token_file = kube, folder / "token"
        self._lists, self._watches = len(kube.asked("list")), len(kube.asked("watch"))
        self.use(kube.token("ackscope", "ackscope"))

    def use(self, token):
        """Replace the token, as the kubelet does."""
        self.token_file.write_text(token + "\n")

    def settings(self, **more):
        """The section of the configuration that uses it."""
        files = {"server_ca_file": str(self.kube.ca_file), "token_file": str(self.token_file)}
        where = {"server": self.kube.url, "namespaces": ["rabbits"], "refresh": "1s"}
        return {"kubernetes": {"enabled": True, **where, **files, **more}}

    def lists(self):
        """Lists of objects that were asked for since the test began."""
        return self.kube.asked("list")[self._lists :]

    def watches(self):
        """Watches that were begun since then."""
        return self.kube.asked("watch")[self._watches :]


@pytest.fixture(scope="module")
def rights(kube):
    """Applies account and rights of the manifest."""
    found = [each for each in yaml.safe_load_all(MANIFEST.read_text()) if each]

    def apply():
        for each in found:
            if each["kind"] in {"ServiceAccount", "Role", "RoleBinding"}:
                assert kube.apply(each, "ackscope").ok

    apply()
    return apply


@pytest.fixture
def account(kube, rights, tmp_path):
    """The account, and two clusters in its namespace; a third is elsewhere."""
    for namespace, name in (("rabbits", "shop"), ("rabbits", "depot"), ("depots", "other")):
        kube.secret(namespace, f"{name}-default-user", username=f"user-{name}", password="hush")
        kube.put(rabbitmq(namespace, name, labels={"team": name}))
    yield Account(tmp_path, kube)
    kube.clear()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Short pauses, so that tests need not wait."""
    monkeypatch.setattr(object_watch, "_BACKOFF", (0.05, 0.5))


def test_clusters_come_and_go_and_come_back(kube, account, caplog):
    """By one list and one watch; a cluster that is being deleted is left before its object goes."""
    caplog.set_level("INFO", "exporter.discovery")
    with discovering(account) as running:
        has(running, "shop", "depot")
        kube.put(rabbitmq("rabbits", "late", conditions=STARTING, status={}))
        eventually(lambda: len(running.status().objects) == 3)
        starting = {it.name: it.reason for it in running.status().objects}
        kube.put(rabbitmq("rabbits", "late"))
        eventually(lambda: "secret-unreadable" in {it.reason for it in running.status().objects})
        kube.secret("rabbits", "late-default-user", username="u", password="hush")
        has(running, "shop", "depot", "late")
        kube.delete("rabbits", "depot")
        has(running, "shop", "late")
        deleting = {it.name: it.reason for it in running.status().objects}
        kube.release("rabbits", "depot")
        eventually(lambda: len(running.status().objects) == 2)
        kube.put(rabbitmq("rabbits", "depot"))
        has(running, "shop", "depot", "late")

        assert (1, 1) == (len(account.lists()), len(account.watches()))
    assert {"shop": None, "depot": None, "late": "starting"} == starting
    assert {"shop": None, "depot": "deleting", "late": None} == deleting
    assert [2, 3, 2, 3] == [len(it) for it in running.reported]
    assert 'secrets "late-default-user" not found' in caplog.text
    assert "hush" not in caplog.text


def test_a_new_password_is_used(kube, account):
    """The secret is read again after the interval of the settings."""
    with discovering(account) as running:
        has(running, "shop", "depot")
        kube.secret("rabbits", "shop-default-user", username="user-shop", password="new")
        eventually(lambda: running.clusters["shop"].management.address().password == "new")

    assert 2 == len(running.reported)


def test_an_object_that_loses_its_label_goes(kube, account):
    """A watch with a selector gets that as the end of the object, and the opposite as its beginning."""
    with discovering(account, label_selector="team=shop") as running:
        has(running, "shop")
        kube.put(rabbitmq("rabbits", "depot", labels={"team": "shop"}))
        has(running, "shop", "depot")
        kube.put(rabbitmq("rabbits", "shop", labels={"team": "none"}))
        has(running, "depot")

        assert 1 == len(account.lists())


def test_a_watch_that_the_server_ends_goes_on(kube, account, monkeypatch):
    """It is no failure. So short a watch has no bookmark, so the objects are listed again."""
    monkeypatch.setattr(object_watch, "_WATCH_SECONDS", 2)
    with discovering(account) as running:
        has(running, "shop", "depot")
        eventually(lambda: len(account.watches()) > 2)
        kube.remove("rabbits", "depot")
        has(running, "shop")

        assert (0, None) == (running.status().failures, running.status().error)


def test_a_quiet_watch_moves_on_with_its_bookmark(kube, account):
    """Which comes after 58 of 60 seconds; so the version does not grow too old while nothing happens here."""
    with discovering(account) as running:
        has(running, "shop", "depot")
        kube.put(rabbitmq("depots", "other", labels={"team": "none"}))
        eventually(lambda: len(account.watches()) > 1)
        first, second = (int(re.search(r"resourceVersion=(\d+)", it)[1]) for it in account.watches())

        assert first < second
        assert (1, 0) == (len(account.lists()), running.status().failures)


@pytest.mark.parametrize("kill", [False, True], ids=["ended", "killed"])
def test_nothing_disappears_while_the_api_server_restarts(kube, account, monkeypatch, kill):
    """What changed meanwhile is found; success is reported within seconds, although nothing more happens."""
    monkeypatch.setattr(object_watch, "_WATCH_SECONDS", 60 if kill else 2)
    with discovering(account) as running:
        has(running, "shop", "depot")
        eventually(account.watches)
        kube.stop(kill=kill)
        eventually(lambda: "connection refused" in (running.status().error or ""))
        kube.start()
        eventually(lambda: running.status().error is None, 15)
        kube.remove("rabbits", "depot")
        has(running, "shop")

    assert [2, 1] == [len(it) for it in running.reported]


def test_a_connection_that_was_cut_is_no_failure_any_more_once_the_watch_goes_on(kube, account):
    """Nothing is listed again, and success does not wait for the next event: with nothing to tell there is none."""
    link = NetworkLink(urlsplit(kube.url).port)
    try:
        with discovering(account, server=f"https://127.0.0.1:{link.port}") as running:
            has(running, "shop", "depot")
            eventually(account.watches)
            link.turn(LinkState.CUT)
            eventually(lambda: running.status().error)
            kube.remove("rabbits", "depot")
            link.turn(LinkState.OPEN)
            has(running, "shop")
            link.turn(LinkState.CUT)
            eventually(lambda: running.status().error)
            link.turn(LinkState.OPEN)
            eventually(lambda: running.status().error is None, 15)

            assert 1 == len(account.lists())
    finally:
        link.close()


@pytest.fixture
def may_watch(monkeypatch):
    """Watches wait until it is set."""
    event, watch = threading.Event(), ObjectWatch._watch

    def held(*words):
        assert event.wait(60)
        watch(*words)

    monkeypatch.setattr(ObjectWatch, "_watch", held)
    yield event
    event.set()


@pytest.mark.parametrize("flags", [["--watch-cache=true"], ["--watch-cache=false"]], ids=["cache", "etcd"])
def test_an_expired_version_is_listed_again(kube, account, may_watch, flags, caplog):
    """The cache of a server that was restarted is younger than the version; or etcd was compacted."""
    try:
        with discovering(account) as running:
            has(running, "shop", "depot")
            kube.remove("rabbits", "depot")
            kube.stop(kill=True)
            kube.start(*flags)
            kube.compact()
            may_watch.set()
            has(running, "shop")
            eventually(lambda: running.status().error is None)

            assert len(account.lists()) > 1
        assert "410" not in caplog.text
    finally:
        if "false" in flags[0]:
            kube.stop(kill=True)
            kube.start()


def test_what_a_restored_etcd_has_forgotten_is_noticed(kube, account, may_watch, monkeypatch):
    """The version is one that is still to come: a watch from it is accepted, and silent."""
    monkeypatch.setattr(object_watch, "_WATCH_SECONDS", 2)
    kube.back_up()
    kube.put(rabbitmq("rabbits", "later"))
    kube.secret("rabbits", "later-default-user", username="u", password="p")
    for number in range(200):
        kube.secret("depots", "any", text=str(number))
    with discovering(account) as running:
        has(running, "shop", "depot", "later")
        kube.restore()
        # The cache of the API server is filled by the first request; until then watches get a 429.
        query = {"watch": "true", "resourceVersion": "1", "timeoutSeconds": "1"}
        eventually(lambda: kube.ask("GET", f"{CLUSTERS}/rabbitmqclusters", **query).status_code == 200)
        may_watch.set()
        has(running, "shop", "depot")

        assert 0 == sum(it.failures for it in running._watches)


def test_a_token_that_expires_is_a_failure_until_there_is_another(kube, account, monkeypatch):
    """What is watched stays; the next token is used at once."""
    monkeypatch.setattr(object_watch, "_WATCH_SECONDS", 1)
    account.use(kube.short_token("ackscope", "ackscope", 5))
    with discovering(account) as running:
        has(running, "shop", "depot")
        eventually(lambda: "401 (Unauthorized)" in (running.status().error or ""))
        time.sleep(2)
        has(running, "shop", "depot")
        account.use(kube.token("ackscope", "ackscope"))
        eventually(lambda: running.status().error is None)
        kube.remove("rabbits", "depot")
        has(running, "shop")

    assert [2, 1] == [len(it) for it in running.reported]


def test_a_token_that_is_replaced_before_it_expires_is_no_failure(kube, account, monkeypatch):
    """As the kubelet does it."""
    monkeypatch.setattr(object_watch, "_WATCH_SECONDS", 1)
    account.use(old := kube.short_token("ackscope", "ackscope", 5))
    with discovering(account) as running:
        has(running, "shop", "depot")
        account.use(kube.token("ackscope", "ackscope"))
        eventually(lambda: kube.ask("GET", SECRET, token=old).status_code == 401)
        watches = len(account.watches())
        eventually(lambda: len(account.watches()) > watches + 2)

        assert 0 == running.status().failures


def test_rights_that_are_taken_are_reported_and_what_was_found_stays(kube, account, rights, monkeypatch, caplog):
    """In the words of the API server. A watch that runs is not ended by it: the next request is refused."""
    monkeypatch.setattr(object_watch, "_WATCH_SECONDS", 2)
    binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/rabbits/rolebindings/ackscope-discovery"
    with discovering(account) as running:
        has(running, "shop", "depot")
        kube.call("DELETE", binding)
        eventually(lambda: "403" in (running.status().error or ""))
        has(running, "shop", "depot")
        rights()
        eventually(lambda: running.status().error is None)
        has(running, "shop", "depot")

    assert (
        '403 (rabbitmqclusters.rabbitmq.com is forbidden: User "system:serviceaccount:ackscope:ackscope" cannot list '
        'resource "rabbitmqclusters" in API group "rabbitmq.com" in the namespace "rabbits")'
    ) in caplog.text
    assert 1 == len(running.reported)


def test_long_lists_are_read_in_pages(kube, account, monkeypatch):
    """Of one version; what comes meanwhile is in the watch."""
    monkeypatch.setattr(object_watch, "_PAGE", 3)
    for number in range(6):
        kube.put(rabbitmq("rabbits", f"q{number}", status={}))
    with discovering(account) as running:
        eventually(lambda: len(running.status().objects) == 8)

        assert 3 == len(account.lists())
        assert ["continue=" in it for it in account.lists()] == [False, True, True]
        assert all("limit=3" in it for it in account.lists())


def test_without_the_operator_there_is_an_error_until_it_is_installed(kube, account):
    """The API server does not know its objects; they are found once it does."""
    (definition,) = (it for it in definitions() if it["spec"]["names"]["kind"] == "RabbitmqCluster")
    kube.clear()
    kube.undefine(definition)
    with discovering(account) as running:
        eventually(lambda: (running.status().error or "").endswith("/rabbitmqclusters: 404"))
        kube.define(definition)
        kube.put(rabbitmq("rabbits", "shop"))
        has(running, "shop")


def test_an_exporter_watches_a_real_broker(kube, account, broker, tmp_path, monkeypatch, caplog):
    """A password rotates, the API server restarts, one of two clusters goes: without a restart of the exporter."""
    node = broker.nodes[0]
    name_services(node, monkeypatch)
    users = Users(node)
    for name in ("shop", "depot"):
        users.put(f"user-{name}", "hush")
    exporter = Discovering(tmp_path, account)
    try:
        exporter.has(*(line.format(name) for name in ("shop", "depot") for line in (POLLED, WATCHED)))
        users.put("user-shop", "hush-two")
        exporter.has(REFUSED, POLLED.format("depot"))
        kube.secret("rabbits", "shop-default-user", username="user-shop", password="hush-two")
        exporter.has(POLLED.format("shop"))
        kube.stop(kill=True)
        exporter.has("ackscope_discovery_success 0", *(POLLED.format(name) for name in ("shop", "depot")))
        kube.start()
        exporter.has("ackscope_discovery_success 1", *(POLLED.format(name) for name in ("shop", "depot")))
        kube.delete("rabbits", "shop")
        eventually(lambda: exporter.objects() == {"shop": "deleting", "depot": None})
        kube.release("rabbits", "shop")
        eventually(lambda: exporter.objects() == {"depot": None})
        exporter.has(POLLED.format("depot"))

        assert 'cluster="shop",family' not in exporter.get()
        assert "hush" not in caplog.text + exporter.get() + exporter.get("/api/v1/discovery")
    finally:
        exporter.app.stop()
        users.remove()
