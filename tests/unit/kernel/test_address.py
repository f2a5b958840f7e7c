"""Addresses: parsed once, shown without their password."""

import pytest

from ackscope.address import parse_amqp, parse_management
from ackscope.errors import UsageError

UNENCODED = (
    "--amqp: a user name, password or virtual host with @ / # or ? in an address must be percent-encoded "
    "(%40 %2F %23 %3F)"
)


def test_an_amqp_url_gives_all_its_parts() -> None:
    """User, password and virtual host are percent-decoded."""
    address = parse_amqp("amqps://us%40er:p%2Fw@broker.example:5999/my%2Fvhost")

    assert ("broker.example", 5999, "us@er", "p/w", "my/vhost", True) == (
        address.host,
        address.port,
        address.username,
        address.password,
        address.vhost,
        address.tls,
    )


@pytest.mark.parametrize(
    ("url", "vhost"), [("amqp://h", "/"), ("amqp://h/", "/"), ("amqp://h/%2F", "/"), ("amqp://h/shop", "shop")]
)
def test_the_path_is_the_virtual_host(url: str, vhost: str) -> None:
    """No path is the default virtual host, as clients have it."""
    assert vhost == parse_amqp(url).vhost


def test_defaults_are_those_of_rabbitmq() -> None:
    """Without them: guest, guest, and the port of the scheme."""
    address = parse_management("https://h/prefix/")

    assert ("guest", "guest", 15671, "/prefix") == (address.username, address.password, address.port, address.path)


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("broker:5672", "--amqp: no scheme, expected amqp or amqps, as in amqp://user:password@host:5672"),
        (
            "http://u:geheim@broker",
            "--amqp: scheme 'http', expected amqp or amqps, as in amqp://user:password@host:5672",
        ),
        ("amqp://u:geheim@:5672", "--amqp: no host, expected amqp://user:password@host:5672"),
        (
            "amqp://h:99999",
            "--amqp: not an address, or a port above 65535; expected amqp://user:password@host:5672",
        ),
        *(
            (f"amqp://u:{password}@h", UNENCODED)
            for password in ("ge/heim", "ge#heim", "ge?heim", "ge@heim", "9@x/geheim")
        ),
        ("amqp://u:geheim@h/v@x", UNENCODED),
        (
            "amqp://u:geheim",
            "--amqp: not an address, or a port above 65535; expected amqp://user:password@host:5672",
        ),
    ],
)
def test_a_bad_address_is_one_line_without_the_password(url: str, line: str) -> None:
    """What, where, what to do instead."""
    with pytest.raises(UsageError) as caught:
        parse_amqp(url)

    assert line == str(caught.value)


@pytest.mark.parametrize("show", [str, repr])
def test_no_way_of_showing_it_has_the_password(show: object) -> None:
    """Logs and errors hold addresses; neither form may leak."""
    assert "geheim" not in show(parse_amqp("amqp://u:geheim@h"))  # type: ignore[operator]
