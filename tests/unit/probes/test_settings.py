import pytest

from ackscope.errors import ConfigError
from ackscope.settings import load
from probes.runner import PROBES
from probes.settings import NAMES, AmqpSettings, ProbesSettings


def write(tmp_path, text):
    """A configuration file."""
    file = tmp_path / "probes.yaml"
    file.write_text(text)
    return file


def test_every_probe_has_its_settings_and_its_factory():
    """The table of probes, their names and their keys agree."""
    assert set(NAMES) == set(PROBES)
    assert set(NAMES) <= set(ProbesSettings.model_fields)


def test_the_defaults_are_light():
    """A few messages a second, small, bounded, on both queue types."""
    settings = ProbesSettings()

    assert NAMES == settings.enabled
    assert settings.prefix == "ackscope.probe"
    assert (5, 2) == (settings.confirm.rate, settings.delivery.rate)
    assert settings.confirm.undecided_after == 30


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("confirm: {rat: 3}", "confirm.rat: unknown key, did you mean 'rate'?"),
        ("enabled: [confrim]", "enabled: no probe 'confrim', did you mean 'confirm'?; known: confirm, delivery"),
        ("confirm: {rate: 9000}", "confirm.rate: input should be less than or equal to 5000"),
        ("confirm: {payload_bytes: 3}", "confirm.payload_bytes: input should be greater than or equal to 32"),
        ("confirm: {undecided_after: soon}", "confirm.undecided_after: 'soon' is not a duration"),
        ("delivery: {queue_types: [lazy]}", "delivery.queue_types.0: input should be 'classic' or 'quorum'"),
    ],
)
def test_wrong_settings_are_told_in_one_line(tmp_path, text, message):
    """File, key, and what to do instead."""
    file = write(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        load(ProbesSettings, file, {})

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_address_is_told_without_its_password(tmp_path):
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
