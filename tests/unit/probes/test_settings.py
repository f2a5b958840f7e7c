import pytest

from ackscope.errors import ConfigError
from ackscope.settings import load
from probes.catalogue import PROBES, confirm, handshake, prefetch, redelivery, rtt
from probes.settings import AmqpSettings, ProbesSettings


def write(tmp_path, text):
    """A configuration file."""
    file = tmp_path / "probes.yaml"
    file.write_text(text)
    return file


def test_the_defaults_are_light():
    """A few messages per second, small, bounded; a warning in the broker's log every ten minutes at most."""
    settings = ProbesSettings()

    assert {name for name, probe in PROBES.items() if probe.protocol == "amqp091"} == {*settings.enabled}
    assert settings.prefix == "ackscope.probe"
    assert (5, 1) == (settings.of(confirm.PROBE).rate, settings.of(PROBES["delivery"]).rate)
    assert settings.of(confirm.PROBE).undecided_after == 30
    assert (30, 1, 10, 10) == (
        settings.of(handshake.PROBE).interval,
        settings.of(rtt.PROBE).interval,
        settings.of(redelivery.PROBE).interval,
        settings.of(prefetch.PROBE).interval,
    )
    assert settings.of(redelivery.PROBE).connection_loss_every == 600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("confirm: {rat: 3}", "confirm.rat: unknown key, did you mean 'rate'?"),
        (
            "enabled: [confrim]",
            "enabled: unknown probe 'confrim', did you mean 'confirm'?; known: confirm, delivery, settle",
        ),
        ("confirm: {rate: 9000}", "confirm.rate: must be at most 5000"),
        ("confirm: {payload_bytes: 3}", "confirm.payload_bytes: must be at least 32"),
        ("confirm: {undecided_after: soon}", "confirm.undecided_after: 'soon' is not a duration"),
        ("delivery: {queue_types: [lazy]}", "delivery.queue_types.0: must be 'classic' or 'quorum'"),
    ],
)
def test_wrong_settings_are_reported_in_one_line(tmp_path, text, message):
    """File, key, and what to do instead."""
    file = write(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        load(ProbesSettings, file, {})

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_address_is_reported_without_its_password(tmp_path):
    """The scheme is what is wrong, and all that is shown."""
    file = write(tmp_path, "url: http://u:hunter2@h")

    with pytest.raises(ConfigError) as caught:
        load(AmqpSettings, file, {})

    assert "url: scheme 'http', expected amqp or amqps" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_keys_beside_the_address_override_it(tmp_path):
    """The password may come from a file of its own."""
    secret = tmp_path / "password"
    secret.write_text("from-file\n")

    server = AmqpSettings(url="amqp://u:p@h/v", username="other", password_file=secret).server()

    assert ("other", "from-file", "v") == (server.address.username, server.address.password, server.address.vhost)


def test_a_node_has_its_own_address_and_what_it_does_not_say_from_the_cluster():
    """User, password and virtual host of the cluster, wherever they were written."""
    settings = AmqpSettings(
        url="amqp://lb:5672/probes",
        username="probe",
        password="word",
        nodes={"rabbit@a": "amqp://a:5673", "rabbit@b": "amqps://other:secret@b/else"},
        verify=False,
    )
    servers = settings.servers()
    first, second = servers["rabbit@a"].address, servers["rabbit@b"].address

    assert ["", "rabbit@a", "rabbit@b"] == list(servers)
    assert ("a", 5673, "probe", "word", "probes") == (
        first.host,
        first.port,
        first.username,
        first.password,
        first.vhost,
    )
    assert ("b", 5671, "other", "secret", "else") == (
        second.host,
        second.port,
        second.username,
        second.password,
        second.vhost,
    )
    assert servers["rabbit@b"].verify is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{rabbit@a: 'http://u:hunter2@a'}", "nodes: rabbit@a: scheme 'http', expected amqp or amqps"),
        ("{'rabbit a': 'amqp://u:hunter2@a'}", "nodes: invalid node name 'rabbit a'; use the broker's form"),
    ],
)
def test_a_wrong_node_is_reported_without_its_password(tmp_path, text, message):
    """Which node, and what is wrong."""
    file = write(tmp_path, f"url: amqp://h\nnodes: {text}")

    with pytest.raises(ConfigError) as caught:
        load(AmqpSettings, file, {})

    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_nodes_can_come_from_the_environment(tmp_path):
    """As one value, written as in the file."""
    file = write(tmp_path, "url: amqp://h")

    settings = load(AmqpSettings, file, {"ACKSCOPE_NODES": "{rabbit@a: 'amqp://a'}"})

    assert ["", "rabbit@a"] == list(settings.servers())
