"""What a broker is made of beside its queues and clients, as recorded brokers tell it."""

from dataclasses import fields

import pytest

from ackscope.topology import AuthAttempts, Binding, Bindings, Feature, Limit, Link, NodeMemory, Policy, VHost
from exporter.broker.endpoints import bindings
from exporter.broker.families import FAMILIES
from exporter.broker.fields import version_of
from tests.unit.exporter.broker.server import VERSIONS, fixture

NODE = "lab1@localhost"


def decoded(version, family, shape="linked"):
    """The objects of a recorded payload, which has no gap."""
    value, gaps = FAMILIES[family].decode(fixture(version, family, shape), version_of(version))
    assert not gaps
    return value


def decode(family, payload, version=(4, 3)):
    """The objects of a payload made by hand, and its gaps."""
    value, gaps = FAMILIES[family].decode(payload, version)
    return value, dict(gaps)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "3.10.8",
            {
                "vhosts": {"default_queue_type", "protected_from_deletion"},
                "features": {"in_use"},
                "links": {"since"},
            },
        ),
        ("4.0.5", {"vhosts": {"protected_from_deletion"}, "links": {"since"}}),
        ("4.3.6", {"links": {"since"}}),
    ],
)
def test_only_what_a_version_does_not_say_is_absent(version, expected):
    """When a link changed is told by none: the broker gives local time without its zone."""
    absent = {}
    for family in ("exchanges", "vhosts", "policies", "limits", "links", "features", "auth", "memory"):
        items = decoded(version, family)
        names = {field.name for field in fields(items[0])}
        absent[family] = {name for name in names if all(getattr(item, name) is None for item in items)}

    assert expected == {family: names for family, names in absent.items() if names}


@pytest.mark.parametrize("version", VERSIONS)
def test_exchanges(version):
    """The default exchange has the name ""; counters where something went through."""
    exchanges = {exchange.key: exchange for exchange in decoded(version, "exchanges")}
    topic = exchanges["/", "topic"]

    assert ("topic", True, False, False) == (topic.type, topic.durable, topic.auto_delete, topic.internal)
    assert (10, 10) == (topic.stats.publish_in, topic.stats.publish_out)
    assert exchanges["/", ""].type == "direct"
    assert exchanges["/", "fed.exchange"].policy == "fed"
    assert exchanges["billing", "amq.direct"].stats.publish_in is None


@pytest.mark.parametrize("version", VERSIONS)
def test_bindings(version):
    """Those of the default exchange are counted and not listed."""
    found = decoded(version, "bindings")

    # Every queue is bound to the default exchange.
    assert found.counts["/", ""] == len(fixture(version, "queues", "linked"))
    assert found.counts["/", "topic"] == 2
    assert Binding(
        vhost="/", source="topic", destination="orders", destination_type="queue", routing_key="order.*"
    ) in (found.listed)
    assert all(binding.source for binding in found.listed)


def test_more_bindings_than_are_worth_holding_are_counted_only(monkeypatch):
    """Absent is not empty: the list is None."""
    monkeypatch.setattr(bindings, "MAX_LISTED", 2)
    payload = [
        {"vhost": "/", "source": "x", "destination": f"q{n}", "destination_type": "queue", "routing_key": ""}
        for n in range(3)
    ]

    assert (Bindings(counts={("/", "x"): 3}, listed=None), {}) == decode("bindings", payload)


def test_a_binding_without_its_key_is_counted_and_not_listed():
    """An empty text is a routing key, and so no stand-in for one that is not told."""
    binding = {"vhost": "/", "source": "x", "destination": "q", "destination_type": "queue"}
    payload = [{**binding, "routing_key": ""}, {**binding, "routing_key": 7}, binding]

    assert (
        Bindings(
            counts={("/", "x"): 3},
            listed=(Binding(vhost="/", source="x", destination="q", destination_type="queue", routing_key=""),),
        ),
        {"routing_key": 2},
    ) == decode("bindings", payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_virtual_hosts(version):
    """Two of them; what 3.10 does not know is absent, its "undefined" too."""
    vhosts = {vhost.name: vhost for vhost in decoded(version, "vhosts")}
    billing, main = vhosts["billing"], vhosts["/"]

    assert ("invoices", {NODE: "running"}, False) == (billing.description, billing.cluster_state, billing.tracing)
    assert main.messages == main.messages_ready + main.messages_unacked
    assert main.stats.publish > 0
    assert main.recv_oct > 0
    assert (None if version.startswith("3.") else "classic") == main.default_queue_type
    assert (False if version == "4.3.6" else None) == main.protected_from_deletion


@pytest.mark.parametrize("version", VERSIONS)
def test_policies(version):
    """Those of users and of operators."""
    policies = {policy.name: policy for policy in decoded(version, "policies")}

    assert {"lim", "fed", "op"} == set(policies)
    assert (
        Policy(
            vhost="/",
            name="op",
            pattern="^orders",
            apply_to="all",
            priority=1,
            definition={"max-length": 4000},
            operator=True,
        )
        == policies["op"]
    )
    assert ("queues", 0, False) == (policies["lim"].apply_to, policies["lim"].priority, policies["lim"].operator)


@pytest.mark.parametrize("version", VERSIONS)
def test_limits(version):
    """Of a virtual host and of a user; negative means none."""
    assert {
        Limit(scope="vhost", subject="billing", name="max-connections", value=100),
        Limit(scope="vhost", subject="billing", name="max-queues", value=-1),
        Limit(scope="user", subject="guest", name="max-channels", value=200),
    } == set(decoded(version, "limits"))


def test_limits_of_users_that_only_administrators_may_see_are_a_gap():
    """4.3 refuses them to the tag `monitoring`; those of virtual hosts are read all the same."""
    payload = {
        "/api/vhost-limits": [{"vhost": "/", "value": {"max-queues": 5}}],
        "/api/user-limits": {"error": "401 this version shows it to administrators only"},
    }

    assert (
        (Limit(scope="vhost", subject="/", name="max-queues", value=5),),
        {"user-limits": 1},
    ) == decode("limits", payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_federation_links(version):
    """One that runs and one that cannot connect, for an exchange and for a queue each."""
    links = [link for link in decoded(version, "links") if link.kind == "federation"]

    assert {
        ("near", "exchange", "fed.exchange", "running", None),
        ("near", "queue", "fed.queue", "running", None),
        ("away", "exchange", "fed.exchange", "error", "econnrefused"),
        ("away", "queue", "fed.queue", "error", "econnrefused"),
    } == {(link.upstream, link.type, link.local, link.state, link.reason) for link in links}
    assert {("/", NODE, "amqp://127.0.0.1:1")} == {
        (link.vhost, link.node, link.source) for link in links if link.name == "away"
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_shovels(version):
    """One that runs, and where the version lists it one that cannot connect; addresses without credentials."""
    shovels = {link.name: link for link in decoded(version, "links") if link.kind == "shovel"}
    mover = shovels["mover"]

    assert ("/", NODE, "dynamic", "running", None) == (mover.vhost, mover.node, mover.type, mover.state, mover.reason)
    assert mover.source.startswith("amqp://127.0.0.1:")
    assert mover.destination.startswith("amqp://127.0.0.1:")
    assert {link.state for name, link in shovels.items() if name == "broken"} <= {"starting", "terminated"}


def test_credentials_in_what_a_link_says_are_cut_out():
    """Whatever a version or plugin puts there: no user, no password, one line of bounded length."""
    payload = {
        "/api/shovels": [
            {
                "name": "s",
                "state": "terminated",
                "reason": '"no way\n to amqps://u:p%40ss@mq/%2F"' + "x" * 999,
                "src_uri": "amqp://u:p@mq",
            }
        ]
    }

    ((link,), gaps) = decode("links", payload)

    assert link.reason.startswith("no way to amqps://mq/%2F")
    assert (300, "amqp://mq", {}) == (len(link.reason), link.source, gaps)


@pytest.mark.parametrize(("blocked", "state"), [("running", "running"), ("blocked", "blocked"), ("flow", "flow")])
def test_a_shovel_that_is_blocked_says_so(blocked, state):
    """Its state is "running" all the while (4.0 on)."""
    payload = {"/api/shovels": [{"name": "s", "state": "running", "blocked_status": blocked}]}

    assert ((Link(kind="shovel", name="s", state=state),), {}) == decode("links", payload)


def test_plugins_that_are_off_are_no_links():
    """Nothing is shovelled, nothing federated."""
    assert ((), {}) == decode("links", {})


@pytest.mark.parametrize(("version", "deprecated", "states"), [("3.10.8", 0, set()), ("4.0.5", 5, {None})])
def test_features_of_older_versions(version, deprecated, states):
    """3.10 has no deprecated features; 4.0 does not tell whether they are permitted, but which are used."""
    features = decoded(version, "features")
    old = [feature for feature in features if feature.deprecated]

    assert {feature.state for feature in features if not feature.deprecated} <= {"enabled", "disabled"}
    assert len(old) >= deprecated
    assert states == {feature.state for feature in old}
    assert {feature.in_use for feature in old} <= {True, False}


def test_features_of_4_3():
    """Flags with their stability, deprecated features with phase, state and use."""
    features = {feature.name: feature for feature in decoded("4.3.6", "features")}

    assert Feature(name="quorum_queue", state="enabled", stage="required") == features["quorum_queue"]
    assert (
        Feature(name="global_qos", deprecated=True, state="denied", stage="denied_by_default", in_use=False)
        == features["global_qos"]
    )


def test_whether_a_feature_is_used_is_unknown_where_the_list_cannot_be_read():
    """A list with a hole in it says of no feature that it is not used."""
    payload = {
        "/api/deprecated-features": [{"name": "global_qos"}],
        "/api/deprecated-features/used": [{"name": None}, {"name": "transient"}],
    }

    assert ((Feature(name="global_qos", deprecated=True),), {"name": 1}) == decode("features", payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_logins(version):
    """A protocol each; one login with a wrong password was tried."""
    attempts = {item.protocol: item for item in decoded(version, "auth")}

    assert {"http", "amqp091"} <= set(attempts)
    assert {NODE} == {item.node for item in attempts.values()}
    http = attempts["http"]
    assert http.failed >= 1
    assert http.total == http.succeeded + http.failed


def test_a_node_that_could_not_be_asked_is_a_gap():
    """The others are there."""
    payload = {
        "a": {"error": "no answer"},
        "b": [{"protocol": "http", "auth_attempts": 1, "auth_attempts_succeeded": 1, "auth_attempts_failed": 0}],
    }

    assert (
        (AuthAttempts(node="b", protocol="http", total=1, succeeded=1, failed=0),),
        {"auth": 1},
    ) == decode("auth", payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_memory(version):
    """Totals and parts; those that a version no longer fills are absent."""
    (node,) = decoded(version, "memory")

    assert (NODE, "rss") == (node.node, node.strategy)
    assert min(node.rss, node.erlang, node.allocated) > 10_000_000
    assert sum(node.parts.values()) >= node.erlang
    assert (version == "3.10.8") == ("queue_slave_procs" in node.parts)
    assert (version != "4.3.6") == ("mnesia" in node.parts)
    assert (version != "3.10.8") == ("metadata_store" in node.parts)


def test_memory_that_is_not_available():
    """A node that hangs says so instead of numbers."""
    payload = {"a": {"memory": "not_available"}, "b": {"memory": {"code": 5, "atom": "x", "total": {"rss": 9}}}}

    assert ((NodeMemory(node="b", parts={"code": 5}, rss=9),), {"memory": 1, "atom": 1}) == decode("memory", payload)


@pytest.mark.parametrize(
    ("family", "payload", "bare"),
    [
        ("vhosts", [{"name": "v"}], VHost(name="v")),
        ("policies", {"/api/policies": [{"vhost": "v", "name": "p"}]}, Policy(vhost="v", name="p")),
        ("features", {"/api/feature-flags": [{"name": "f"}]}, Feature(name="f")),
        ("auth", {"n": [{"protocol": "http"}]}, AuthAttempts(node="n", protocol="http")),
        ("memory", {"n": {"memory": {}}}, NodeMemory(node="n")),
    ],
)
def test_absent_is_none_and_no_gap(family, payload, bare):
    """An object of which nothing but its name is told."""
    assert ((bare,), {}) == decode(family, payload)
