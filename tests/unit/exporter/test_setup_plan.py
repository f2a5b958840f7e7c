"""What `ackscope init` finds and plans, without a broker."""

import shlex

import pytest
import yaml

from ackscope.address import parse_management
from ackscope.errors import BadAnswer, Refused
from exporter.setup.config_file import InitLayout, config_text, name_from
from exporter.setup.plan import PROBE_PERMISSIONS, SetupNames, steps
from exporter.setup.survey import BrokerSurvey, SurveyedNode, survey, tags_of

NAMES = SetupNames("monitor", "probe", "probes")


class Client:
    """Answers from a table, as the management API does."""

    def __init__(self, answers, url="http://admin:secret@shop-rabbit:15672"):
        self.address, self._answers, self.asked = parse_management(url), answers, []

    def get(self, path):
        """Answer."""
        self.asked.append(path)
        return self._answers[path]


def answers(tags="administrator", listeners=None):
    """The answers of a cluster of two nodes."""
    return {
        "/api/whoami": {"name": "admin", "tags": tags},
        "/api/overview": {
            "rabbitmq_version": "4.3.6",
            "cluster_name": "rabbit@one",
            "node": "rabbit@one",
            "listeners": listeners
            or [
                {"node": "rabbit@one", "protocol": "amqp", "ip_address": "::", "port": 5672},
                {"node": "rabbit@one", "protocol": "amqp/ssl", "ip_address": "::", "port": 5671},
                {"node": "rabbit@two", "protocol": "amqp", "ip_address": "10.0.0.2", "port": 5672},
                {"node": "rabbit@two", "protocol": "clustering", "ip_address": "::", "port": 25672},
            ],
        },
        "/api/nodes": [{"name": "rabbit@one", "running": True}, {"name": "rabbit@two", "running": True}],
        "/api/vhosts": [{"name": "shop"}, {"name": "/"}],
        "/api/users": [{"name": "admin", "tags": ["administrator"]}, {"name": "monitor", "tags": "monitoring"}],
        "/api/permissions": [{"user": "monitor", "vhost": "/"}, {"user": "admin", "vhost": "/"}],
    }


def test_every_node_gets_the_address_that_answers():
    """The node that answered by the host of the management address, others by their name or the address of the port."""
    reachable = {("amqp", "shop-rabbit", 5672), ("amqp", "10.0.0.2", 5672)}
    found = survey(Client(answers()), lambda *at: at in reachable)

    assert (
        SurveyedNode("rabbit@one", True, "amqp://shop-rabbit:5672"),
        SurveyedNode("rabbit@two", True, "amqp://10.0.0.2:5672"),
    ) == found.nodes
    assert "amqp://shop-rabbit:5672" == found.amqp


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a:b@shop-rabbit:15672", "amqp://shop-rabbit:5672"),
        ("https://a:b@shop-rabbit", "amqps://shop-rabbit:5671"),
    ],
)
def test_tls_on_one_side_means_tls_on_the_other(url, expected):
    """If both ports answer."""
    assert expected == survey(Client(answers(), url), lambda *_: True).amqp


def test_a_cluster_whose_amqp_cannot_be_reached_has_no_address():
    """Nothing is guessed."""
    found = survey(Client(answers()), lambda *_: False)

    assert (None, [None, None]) == (found.amqp, [node.amqp for node in found.nodes])


def test_only_an_administrator_is_asked_for_users():
    """Others are refused there."""
    client = Client(answers("monitoring"))
    found = survey(client, lambda *_: True)

    assert not found.administrator
    assert ({}, {}) == (found.users, found.permitted)
    assert not {"/api/users", "/api/permissions"} & set(client.asked)


def test_a_user_without_a_tag_that_sees_nodes_is_refused():
    """The line says what to do."""
    with pytest.raises(Refused, match="set_user_tags admin monitoring"):
        survey(Client(answers("management")), lambda *_: True)


def test_what_is_no_rabbitmq_is_refused():
    """One line instead of a KeyError."""
    with pytest.raises(BadAnswer, match="no RabbitMQ"):
        survey(Client({**answers(), "/api/overview": {"product": "other"}}), lambda *_: True)


@pytest.mark.parametrize(("tags", "expected"), [("a,b", {"a", "b"}), (["a"], {"a"}), ("", set()), (None, set())])
def test_tags_of_all_versions(tags, expected):
    """A list since 3.9, text before."""
    assert expected == tags_of({"tags": tags})


def broker(**changes):
    """A survey by an administrator of a broker where nothing was made yet."""
    empty = {"users": {}, "permitted": {}, "vhosts": ("/", "shop")}
    both = {"version": "4.3.6", "cluster": "c", "nodes": (), "amqp": "amqp://h:5672"}
    return BrokerSurvey(**{**both, **empty, "user": "admin", "tags": frozenset({"administrator"}), **changes})


def test_on_a_new_broker_everything_is_made_in_an_order_that_works():
    """Virtual host and user before the permission that needs both."""
    planned = steps(broker(), NAMES)

    assert [
        "/api/users/monitor",
        "/api/vhosts/probes",
        "/api/users/probe",
        "/api/permissions/probes/probe",
        "/api/permissions/%2F/monitor",
        "/api/permissions/shop/monitor",
        "/api/permissions/probes/monitor",
    ] == [step.path for step in planned]
    assert ["monitor", "probe"] == [step.user for step in planned if step.user]
    assert PROBE_PERMISSIONS == planned[3].document


def test_what_exists_is_left_alone():
    """A second run makes only what is missing."""
    made = broker(
        users={"monitor": frozenset({"monitoring"}), "probe": frozenset()},
        vhosts=("/", "new", "probes"),
        permitted={"monitor": frozenset({"/", "probes"}), "probe": frozenset({"probes"})},
    )

    assert ["/api/permissions/new/monitor"] == [step.path for step in steps(made, NAMES)]


def test_a_new_password_keeps_the_tags_of_the_user():
    """The API replaces both."""
    made = broker(users={"monitor": frozenset({"policymaker", "monitoring"})})
    step = steps(made, NAMES, renew={"monitor"})[0]

    assert {"tags": "monitoring,policymaker"} == step.document
    assert step.command.startswith("rabbitmqctl change_password monitor && ")


def test_without_probes_there_is_no_virtual_host():
    """Reading needs one user only."""
    planned = steps(broker(), SetupNames("monitor", None, "probes"))

    assert {"/api/users/monitor", "/api/permissions/%2F/monitor", "/api/permissions/shop/monitor"} == {
        step.path for step in planned
    }


def test_commands_can_be_pasted_into_a_shell():
    """Whatever the names are."""
    planned = steps(broker(vhosts=("a b; rm -rf $HOME",)), NAMES)
    words = [shlex.split(step.command) for step in planned]

    assert ["rabbitmqctl", "set_permissions", "-p", "a b; rm -rf $HOME", "monitor", "", "", ""] in words


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ("rabbit@shop-1.example.org", "shop-1"),
        ("shop", "shop"),
        ("-- Ü --", "rabbitmq"),
        ("a b", "a-b"),
        ("", "rabbitmq"),
    ],
)
def test_the_name_of_a_cluster_fits_into_a_label(cluster, expected):
    """Short, and valid in the configuration."""
    assert expected == name_from(cluster)


def test_under_systemd_passwords_are_read_where_the_unit_shows_them(tmp_path):
    """The files are beside the configuration, and the exporter sees copies."""
    layout = InitLayout(tmp_path, tmp_path / "data", systemd=True)
    text = config_text("shop", {"password_file": str(layout.seen_by_exporter("monitor"))}, None, layout)
    cluster = yaml.safe_load(text)["clusters"]["shop"]

    assert tmp_path / "credentials/monitor" == layout.password_file("monitor")
    assert {"management": {"password_file": "/run/credentials/ackscope-exporter.service/monitor"}} == cluster
    assert "exporter.yml" == layout.config.name


def test_the_ports_of_the_stream_protocol_are_those_of_the_node_that_answered():
    """Plain and TLS apart; the ports of other nodes may differ and are not reached by the address in `url`."""
    listeners = [
        {"node": "rabbit@one", "protocol": "stream", "ip_address": "::", "port": 5600},
        {"node": "rabbit@one", "protocol": "stream/ssl", "ip_address": "::", "port": 5601},
        {"node": "rabbit@two", "protocol": "stream", "ip_address": "::", "port": 5700},
    ]

    found = survey(Client(answers(listeners=listeners)), lambda *at: True)

    assert {False: 5600, True: 5601} == found.stream_ports
    assert {} == survey(Client(answers()), lambda *at: True).stream_ports
