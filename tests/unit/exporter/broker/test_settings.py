import pytest
from pydantic import ValidationError

from ackscope.errors import ConfigError, UsageError
from exporter.broker.settings import ManagementSettings, OAuth2Settings


def test_credentials_default_to_those_of_the_url():
    """User and password of the URL apply if nothing else is set."""
    address = ManagementSettings(url="http://ops:p%40ss@mq:1234/rabbit/").address()

    assert ("ops", "p@ss", "mq", 1234, "/rabbit") == (
        address.username,
        address.password,
        address.host,
        address.port,
        address.path,
    )


def test_separate_credentials_override_the_url():
    """Username and password replace those of the URL."""
    address = ManagementSettings(url="http://ops:old@mq", username="eve", password="new").address()

    assert ("eve", "new") == (address.username, address.password)


def test_a_password_file_overrides_the_url(tmp_path):
    """The first line of the file is the password."""
    file = tmp_path / "password"
    file.write_text("from file\nrest\n")

    address = ManagementSettings(url="http://ops@mq", password="old", password_file=file).address()

    assert address.password == "from file"


def test_no_password_is_ever_shown():
    """Neither the text form nor the JSON of the settings contains a password."""
    settings = ManagementSettings(url="http://ops:s3cret@mq", password="s3cret")

    assert "s3cret" not in repr(settings) + str(settings) + settings.model_dump_json() + str(settings.address())


def test_a_missing_password_file_is_named(tmp_path):
    """The error names setting and file."""
    file = tmp_path / "absent"
    settings = ManagementSettings(url="http://ops@mq", password_file=file)

    with pytest.raises(ConfigError) as caught:
        settings.address("clusters.shop.management")

    assert (
        f"clusters.shop.management.password_file: {file} cannot be read (No such file or directory); "
        "check its path and owner"
    ) == str(caught.value)


def test_an_address_of_another_protocol_is_refused():
    """The error names the setting and what is expected."""
    with pytest.raises(UsageError) as caught:
        ManagementSettings(url="amqp://mq").address("clusters.shop.management")

    assert (
        "clusters.shop.management.url: scheme 'amqp', expected http or https, as in http://user:password@host:15672"
    ) == str(caught.value)


def test_durations_are_read_as_text():
    """A timeout may be written with its unit."""
    assert ManagementSettings(url="http://mq", timeout="500ms").timeout == 0.5


OAUTH2 = {"token_url": "https://login.example/oauth/token", "client_id": "monitor", "client_secret": "s3cret"}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"token": "t", "token_file": "f"}, "both token and token_file are set; keep one"),
        ({"token": "t", "oauth2": OAUTH2}, "both token and oauth2 are set; keep one"),
        ({"token_file": "f", "oauth2": OAUTH2}, "both token_file and oauth2 are set; keep one"),
        (
            {"token": "t", "username": "u"},
            "both token and username are set; a token replaces user and password: keep one",
        ),
        (
            {"oauth2": OAUTH2, "password_file": "f"},
            "both oauth2 and password_file are set; a token replaces user and password: keep one",
        ),
        (
            {"url": "https://u:s3cret@mq", "token_file": "f"},
            "a token is set and url contains a user or password; keep one",
        ),
        ({"key_file": "k"}, "key_file is set without cert_file; set cert_file to the certificate of this key"),
        (
            {"url": "http://mq", "cert_file": "c"},
            "cert_file is set and url is http://; use https://, a certificate needs TLS",
        ),
        (
            {"ca_file": "c", "verify": False},
            "ca_file is set but verify is false, so it would be ignored; remove one of them",
        ),
        ({"oauth2": {**OAUTH2, "client_secret": None}}, "no secret; set client_secret_file or client_secret"),
        (
            {"oauth2": {**OAUTH2, "client_secret_file": "f"}},
            "both client_secret and client_secret_file are set; keep one",
        ),
        (
            {"oauth2": {**OAUTH2, "token_url": "login.example/token"}},
            "invalid address; use the token endpoint, such as https://host/oauth/token",
        ),
        (
            {"oauth2": {**OAUTH2, "token_url": "https://u:s3cret@login.example/token"}},
            "contains a user or password; use client_id and client_secret instead",
        ),
        (
            {"oauth2": {**OAUTH2, "token_url": "https://login.example"}},
            "has no path; use the token endpoint, such as https://host/oauth/token",
        ),
        ({"oauth2": {**OAUTH2, "client_id": ""}}, "String should have at least 1 character"),
        ({"timeout": 0}, "Input should be greater than 0"),
        ({"timeout": "2 fortnights"}, "'2 fortnights' is not a duration, write 30s, 5m, 1h or 200ms"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, text):
    """With one exact line, without the secret."""
    with pytest.raises(ValidationError) as caught:
        ManagementSettings.model_validate({"url": "https://mq", **settings})

    (error,) = caught.value.errors()
    assert text == error["msg"].removeprefix("Value error, ")
    assert "s3cret" not in str(caught.value)


def test_no_token_or_client_secret_is_ever_shown():
    """Neither the text form nor the JSON of the settings contains one."""
    for settings in ({"token": "s3cret"}, {"oauth2": OAUTH2}):
        made = ManagementSettings(url="https://mq", **settings)

        assert "s3cret" not in repr(made) + str(made) + made.model_dump_json()


def test_the_default_port_of_a_token_server_is_443():
    """Not that of a broker, the default elsewhere."""
    secure = OAuth2Settings(**OAUTH2).address("oauth2.token_url")
    plain = OAuth2Settings(**{**OAUTH2, "token_url": "http://login.example/t"}).address("oauth2.token_url")
    named = OAuth2Settings(**{**OAUTH2, "token_url": "https://login.example:8443/t"}).address("oauth2.token_url")

    assert [443, 80, 8443] == [secure.port, plain.port, named.port]
