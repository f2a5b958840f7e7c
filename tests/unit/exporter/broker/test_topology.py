"""Topology and configuration of recorded brokers: exchanges, bindings, policies, limits, links and more."""

from dataclasses import fields

import pytest

from ackscope.snapshot import version_of
from ackscope.topology import AuthAttempts, Binding, Bindings, Feature, Limit, Link, NodeMemory, Policy, VHost
from exporter.broker.endpoints import bindings
from exporter.broker.families import FAMILIES
from tests.unit.exporter.broker.server import VERSIONS, fixture

NODE = "lab1@localhost"


def decoded(version, family, shape="linked"):
    """The objects of a recorded payload, which has no gap."""
    value, gaps = FAMILIES[family].decode(fixture(version, family, shape), version_of(version))
    assert not gaps
    return value


def decode(family, payload, version=(4, 3)):
    """The objects of a handmade payload, and its gaps."""
    value, gaps = FAMILIES[family].decode(payload, version)
    return value, dict(gaps)


SHOVEL_DETAILS = {"since", "forwarded", "source_key", "target_exchange", "target_key"}
"""What the recorded links do not show: shovels are between queues, and `forwarded` is new in 4.3."""


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "3.10.8",
            {
                "vhosts": {"default_queue_type", "protected_from_deletion"},
                "features": {"in_use"},
                "links": SHOVEL_DETAILS,
            },
        ),
        ("4.0.5", {"vhosts": {"protected_from_deletion"}, "links": SHOVEL_DETAILS}),
        ("4.3.6", {"links": SHOVEL_DETAILS - {"forwarded"}}),
    ],
)
def test_only_known_gaps_of_a_version_are_absent(version, expected):
    """The time of a link's last change is always absent: the broker sends local time without a zone."""
    absent = {}
    for family in ("exchanges", "vhosts", "policies", "limits", "links", "features", "auth", "memory"):
        items = decoded(version, family)
        names = {field.name for field in fields(items[0])}
        absent[family] = {name for name in names if all(getattr(item, name) is None for item in items)}

    assert expected == {family: names for family, names in absent.items() if names}


@pytest.mark.parametrize("version", VERSIONS)
def test_exchanges(version):
    """The default exchange has the name ""; counters exist where messages were published."""
    exchanges = {exchange.key: exchange for exchange in decoded(version, "exchanges")}
    topic = exchanges["/", "topic"]

    assert ("topic", True, False, False) == (topic.type, topic.durable, topic.auto_delete, topic.internal)
    assert (10, 10) == (topic.stats.publish_in, topic.stats.publish_out)
    assert exchanges["/", ""].type == "direct"
    assert exchanges["/", "fed.exchange"].policy == "fed"
    assert exchanges["billing", "amq.direct"].stats.publish_in is None


@pytest.mark.parametrize("version", VERSIONS)
def test_bindings(version):
    """Those of the default exchange are counted but not listed."""
    found = decoded(version, "bindings")

    # Every queue is bound to the default exchange.
    assert found.counts["/", ""] == len(fixture(version, "queues", "linked"))
    assert found.counts["/", "topic"] == 2
    assert Binding(
        vhost="/", source="topic", destination="orders", destination_type="queue", routing_key="order.*"
    ) in (found.listed)
    assert all(binding.source for binding in found.listed)


def test_too_many_bindings_are_only_counted(monkeypatch):
    """Absent is not empty: the list is None."""
    monkeypatch.setattr(bindings, "MAX_LISTED", 2)
    payload = [
        {"vhost": "/", "source": "x", "destination": f"q{n}", "destination_type": "queue", "routing_key": ""}
        for n in range(3)
    ]

    assert (Bindings(counts={("/", "x"): 3}, listed=None), {}) == decode("bindings", payload)


def test_a_binding_without_its_key_is_counted_and_not_listed():
    """An empty text is a valid routing key, so it cannot stand for a missing one."""
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
    """Two of them; fields that 3.10 lacks are absent, including its "undefined"."""
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
    """Policies and operator policies."""
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
    """Of a virtual host and of a user; a negative value means no limit."""
    assert {
        Limit(scope="vhost", subject="billing", name="max-connections", value=100),
        Limit(scope="vhost", subject="billing", name="max-queues", value=-1),
        Limit(scope="user", subject="guest", name="max-channels", value=200),
    } == set(decoded(version, "limits"))


def test_user_limits_for_administrators_only_are_a_gap():
    """4.3 refuses them to the tag `monitoring`; limits of virtual hosts are still read."""
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
    """One that is running and one that cannot connect, for an exchange and a queue each."""
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
    """One that is running and, if the version lists it, one that cannot connect; URIs without credentials."""
    shovels = {link.name: link for link in decoded(version, "links") if link.kind == "shovel"}
    mover = shovels["mover"]

    assert ("/", NODE, "dynamic", "running", None) == (mover.vhost, mover.node, mover.type, mover.state, mover.reason)
    assert mover.source.startswith("amqp://127.0.0.1:")
    assert mover.destination.startswith("amqp://127.0.0.1:")
    assert {link.state for name, link in shovels.items() if name == "broken"} <= {"starting", "terminated"}


def test_messages_in_link_errors_are_removed():
    """A shovel whose publish fails reports the call with its message; a text of the other broker is unpacked."""
    call = (
        "{noproc,{gen_server,call,[<0.2.0>,{call,{'basic.publish',0},{amqp_msg,{'P_basic'},<<\"secret\">>},<0.1.0>}]}}"
    )
    said = "<<\"NOT_FOUND - no exchange 'a' in vhost '/'\">>"
    payload = {"/api/shovels": [{"name": "s", "state": "terminated", "reason": each} for each in (call, said)]}

    ((one, two), _) = decode("links", payload)

    assert "{amqp_msg, ..." == one.reason[-14:]
    assert "NOT_FOUND - no exchange 'a' in vhost '/'" == two.reason


def test_credentials_in_link_errors_are_removed():
    """Whatever a version or plugin sends: no user, no password, one line of bounded length."""
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
def test_a_blocked_shovel_has_that_state(blocked, state):
    """The broker reports "running" for it (since 4.0)."""
    payload = {"/api/shovels": [{"name": "s", "state": "running", "blocked_status": blocked}]}

    assert ((Link(kind="shovel", name="s", state=state),), {}) == decode("links", payload)


def test_disabled_plugins_have_no_links():
    """Neither shovels nor federation links."""
    assert ((), {}) == decode("links", {})


@pytest.mark.parametrize(("version", "deprecated", "states"), [("3.10.8", 0, set()), ("4.0.5", 5, {None})])
def test_features_of_older_versions(version, deprecated, states):
    """3.10 has no deprecated features; 4.0 reports which are used, but not whether they are permitted."""
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


def test_feature_use_is_unknown_if_the_list_has_gaps():
    """An incomplete list does not prove that a feature is unused."""
    payload = {
        "/api/deprecated-features": [{"name": "global_qos"}],
        "/api/deprecated-features/used": [{"name": None}, {"name": "transient"}],
    }

    assert ((Feature(name="global_qos", deprecated=True),), {"name": 1}) == decode("features", payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_logins(version):
    """One entry per protocol; one login with a wrong password was attempted."""
    attempts = {item.protocol: item for item in decoded(version, "auth")}

    assert {"http", "amqp091"} <= set(attempts)
    assert {NODE} == {item.node for item in attempts.values()}
    http = attempts["http"]
    assert http.failed >= 1
    assert http.total == http.succeeded + http.failed


def test_a_node_that_could_not_be_read_is_a_gap():
    """The others are present."""
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
    """Totals and parts; parts that a version no longer fills are absent."""
    (node,) = decoded(version, "memory")

    assert (NODE, "rss") == (node.node, node.strategy)
    assert min(node.rss, node.erlang, node.allocated) > 10_000_000
    assert sum(node.parts.values()) >= node.erlang
    assert (version == "3.10.8") == ("queue_slave_procs" in node.parts)
    assert (version != "4.3.6") == ("mnesia" in node.parts)
    assert (version != "3.10.8") == ("metadata_store" in node.parts)


def test_memory_that_is_not_available():
    """A node that hangs has a text instead of numbers."""
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
    """An object with only a name."""
    assert ((bare,), {}) == decode(family, payload)


def test_a_shovel_shows_its_source_and_target():
    """Queues, or an exchange with a key; `forwarded` on 4.3."""
    payload = {
        "/api/shovels": [
            {
                "name": "s",
                "vhost": "/",
                "state": "running",
                "src_queue": "ship",
                "dest_exchange": "shore",
                "dest_exchange_key": "in",
                "forwarded": 17,
                "remaining": "unlimited",
            }
        ]
    }

    ((link,), gaps) = decode("links", payload)

    assert ("ship", None, "shore", "in", 17, {}) == (
        link.source_queue,
        link.target_queue,
        link.target_exchange,
        link.target_key,
        link.forwarded,
        gaps,
    )


def test_where_links_take_messages_from():
    """A shovel from an exchange with its binding key, and the upstream of a federation link."""
    shovels = [
        {
            "name": "s",
            "vhost": "/",
            "state": "running",
            "src_exchange": "orders",
            "src_exchange_key": "eu.#",
            "dest_queue": "q",
        }
    ]
    upstream = {"upstream": "eu", "vhost": "/", "status": "running", "uri": "amqp://eu"}
    links = [
        {**upstream, "type": "exchange", "exchange": "orders", "upstream_exchange": "sales"},
        {**upstream, "type": "queue", "queue": "jobs", "upstream_queue": "work"},
    ]

    (found, gaps) = decode("links", {"/api/shovels": shovels, "/api/federation-links": links})

    assert [("orders", None, "eu.#"), ("sales", None, None), (None, "work", None)] == [
        (each.source_exchange, each.source_queue, each.source_key) for each in found
    ]
    assert {} == gaps
