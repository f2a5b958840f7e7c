import pytest

from ackscope.errors import ConfigError, UsageError
from exporter.broker.settings import ManagementSettings


def test_credentials_default_to_those_of_the_url():
    """User and password of the URL count where nothing else is given."""
    address = ManagementSettings(url="http://ops:p%40ss@mq:1234/rabbit/").address()

    assert ("ops", "p@ss", "mq", 1234, "/rabbit") == (
        address.username,
        address.password,
        address.host,
        address.port,
        address.path,
    )


def test_credentials_of_their_own_win_over_the_url():
    """Username and password replace those of the URL."""
    address = ManagementSettings(url="http://ops:old@mq", username="eve", password="new").address()

    assert ("eve", "new") == (address.username, address.password)


def test_a_password_file_wins_over_a_password(tmp_path):
    """The first line of the file is the password."""
    file = tmp_path / "password"
    file.write_text("from file\nrest\n")

    address = ManagementSettings(url="http://ops@mq", password="old", password_file=file).address()

    assert address.password == "from file"


def test_no_password_is_ever_shown():
    """Neither the text form nor the JSON of the settings holds a password."""
    settings = ManagementSettings(url="http://ops:s3cret@mq", password="s3cret")

    assert "s3cret" not in repr(settings) + str(settings) + settings.model_dump_json() + str(settings.address())


def test_a_missing_password_file_is_named(tmp_path):
    """The message names key and file."""
    file = tmp_path / "absent"
    settings = ManagementSettings(url="http://ops@mq", password_file=file)

    with pytest.raises(ConfigError) as caught:
        settings.address("clusters.shop.management")

    assert (
        f"clusters.shop.management.password_file: {file} cannot be read (No such file or directory); "
        "check its path and owner"
    ) == str(caught.value)


def test_an_address_of_another_protocol_is_refused():
    """The message names the key and what is expected."""
    with pytest.raises(UsageError) as caught:
        ManagementSettings(url="amqp://mq").address("clusters.shop.management")

    assert (
        "clusters.shop.management.url: scheme 'amqp', expected http or https, as in http://user:password@host:15672"
    ) == str(caught.value)


def test_durations_are_read_as_text():
    """A timeout may be written with its unit."""
    assert ManagementSettings(url="http://mq", timeout="500ms").timeout == 0.5
