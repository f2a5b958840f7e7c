"""What becomes of `RabbitmqCluster` objects."""

from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from exporter.discovery.objects import (
    STARTING_SECONDS,
    Login,
    NotWatched,
    SecretPlace,
    discover,
    name_clusters,
    parse_object,
)
from exporter.discovery.settings import KubernetesSettings
from tests.kube_api import STARTING, rabbitmq

CREATED = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
NEW = {"conditions": STARTING, "creationTimestamp": "2026-01-01T00:00:00Z"}
LOGIN = Login("default_user_x", SecretStr("hush"))


def found(*documents, configured=(), before=(), now=CREATED, logins=None, **settings):
    """What becomes of these objects; by default every secret has been read."""
    objects = [parse_object(it) for it in documents]
    read = {it.secret: LOGIN for it in objects if it.secret} if logins is None else logins
    return discover(objects, read, configured, KubernetesSettings(**settings), now, before)


def only(*arguments, **more):
    """What becomes of the only object."""
    (one,) = found(*arguments, **more)
    return one


def test_an_object_is_watched_through_its_service_as_its_default_user():
    """Management and Prometheus ports; nothing that would publish."""
    one = only(rabbitmq("rabbits", "shop", spec={"replicas": 2}))
    address = one.settings.management.address()

    assert ("shop", None) == (one.cluster, one.reason)
    assert "http://shop.rabbits.svc:15672" == address.url
    assert ("default_user_x", "hush") == (address.username, address.password)
    assert (
        "http://shop-server-0.shop-nodes.rabbits.svc:15692",
        "http://shop-server-1.shop-nodes.rabbits.svc:15692",
    ) == one.settings.prometheus.urls
    assert one.settings.amqp is None
    assert "hush" not in repr(one) + repr(one.settings)


def test_probes_are_switched_on_by_a_setting():
    """On the virtual host of the setting."""
    server = only(rabbitmq("rabbits", "shop"), probes=True, probe_vhost="a/b").settings.amqp.servers()[""]

    assert ("amqp", "shop.rabbits.svc", 5672, "a/b", "hush") == (
        server.address.scheme,
        server.address.host,
        server.address.port,
        server.address.vhost,
        server.password(),
    )


@pytest.mark.parametrize(("closed", "ports"), [(True, (15671, 15691, 5671)), (False, (15672, 15692, 5672))])
def test_tls_is_used_where_nothing_else_is_open(closed, ports):
    """The plain ports otherwise, even if the broker has a certificate."""
    tls = {"secretName": "shop-tls", "disableNonTLSListeners": closed}
    one = only(rabbitmq("rabbits", "shop", spec={"tls": tls}), probes=True, domain="svc.cluster.local")
    management, amqp = one.settings.management.address(), one.settings.amqp.servers()[""].address
    (prometheus,) = one.settings.prometheus.urls

    assert ports == (management.port, int(prometheus.rpartition(":")[2]), amqp.port)
    assert {closed} == {management.tls, amqp.tls, prometheus.startswith("https://")}
    assert "shop.rabbits.svc.cluster.local" == management.host == amqp.host


VAULT = {"defaultUser": {"serviceReference": {"name": "shop", "namespace": "rabbits"}}}
ELSEWHERE = {"defaultUser": {"secretReference": {"name": "admin", "namespace": "kube-system", "keys": {}}}}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (rabbitmq("rabbits", "shop", status=VAULT), NotWatched.NO_USER),
        (rabbitmq("rabbits", "shop", status={}, **NEW), NotWatched.STARTING),
        (rabbitmq("rabbits", "shop", status={}), NotWatched.NO_USER),
        (rabbitmq("rabbits", "shop", **NEW), NotWatched.STARTING),
        (rabbitmq("rabbits", "shop", spec={"replicas": 0}), NotWatched.STOPPED),
        (rabbitmq("rabbits", "shop", deletionTimestamp="2026-01-01T00:00:00Z"), NotWatched.DELETING),
        (rabbitmq("rabbits", "shop", status=ELSEWHERE), NotWatched.OTHER_NAMESPACE),
        (rabbitmq("rabbits", "Shop!"), NotWatched.INVALID),
        (rabbitmq("n" * 60, "s" * 60), NotWatched.INVALID),
    ],
)
def test_an_object_that_is_not_watched_has_a_reason(document, reason):
    """One, the first that applies."""
    one = only(document, full_names=True)

    assert (reason, None) == (one.reason, one.settings)


def test_a_broker_that_goes_down_stays_watched():
    """And one that never started is watched in the end, so that diagnosis reports it."""
    down = rabbitmq("rabbits", "shop", **NEW)

    up = only(rabbitmq("rabbits", "shop"))

    assert only(down, before=[up]).reason is None
    assert only(down, now=CREATED + STARTING_SECONDS).reason is None


def test_what_did_not_change_is_not_made_again():
    """A new password, another replica or another setting makes new settings."""
    document, other = rabbitmq("rabbits", "shop"), Login("default_user_x", SecretStr("new"))
    one = only(document)
    place = parse_object(document).secret

    assert only(document, before=[one]) is one
    assert only(document, before=[one], logins={place: other}).settings.management.address().password == "new"
    assert 3 == len(only(rabbitmq("rabbits", "shop", spec={"replicas": 3}), before=[one]).settings.prometheus.urls)
    assert only(document, before=[one], probes=True).settings.amqp is not None


def test_the_secret_is_that_of_the_binding():
    """With an external secret, the reference names one that does not exist; its keys are in force."""
    document = rabbitmq("rabbits", "shop")
    document["status"]["binding"]["name"] = "from-outside"
    document["status"]["defaultUser"]["secretReference"]["keys"] = {"username": "user", "password": "pass"}

    assert SecretPlace("rabbits", "from-outside", "user", "pass") == parse_object(document).secret


def test_names_are_short_where_they_are_unique():
    """A dot separates the namespace, as a name of a cluster is also that of a folder."""
    objects = [parse_object(rabbitmq(*it)) for it in (("a", "shop"), ("b", "shop"), ("b", "depot"))]

    assert ["a.shop", "b.shop", "depot"] == list(name_clusters(objects, full=False).values())
    assert ["a.shop", "b.shop", "b.depot"] == list(name_clusters(objects, full=True).values())


def test_a_configured_cluster_takes_precedence():
    """By its name."""
    both = found(rabbitmq("a", "shop"), rabbitmq("b", "depot"), configured={"shop"})

    assert {"shop": NotWatched.CONFIGURED, "depot": None} == {it.name: it.reason for it in both}


def test_without_its_password_a_cluster_is_not_watched():
    """The secret could not be read."""
    assert NotWatched.UNREADABLE is only(rabbitmq("rabbits", "shop"), logins={}).reason


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"metadata": {"name": 1, "namespace": "a"}},
        {"metadata": None},
        {
            "metadata": {"name": "x", "namespace": "a", "creationTimestamp": 5},
            "spec": {"replicas": "many", "tls": [], "rabbitmq": 1},
            "status": {"conditions": {"a": 1}, "defaultUser": [], "binding": 3},
        },
        {"metadata": {"name": "x", "namespace": "a"}, "status": {"conditions": [None, 1, {}]}},
    ],
)
def test_an_object_that_is_not_as_documented_does_no_harm(document):
    """It is left out, or not watched."""
    item = parse_object(document)

    assert item is None or discover([item], {}, (), KubernetesSettings(), CREATED)[0].settings is None
