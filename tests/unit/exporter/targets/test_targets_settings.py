import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3.util import parse_url

from ackscope.errors import UsageError
from exporter.targets.settings import ModuleSettings

ONE = ModuleSettings(
    targets=(
        "shop.internal:15672",
        r"rabbit-[0-9]+\.shop\.internal:15672",
        "[::1]:15672",
        "shop.internal:15672/rabbit",
    ),
    username="monitor",
)


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("shop.internal:15672", "http://shop.internal:15672"),
        ("SHOP.internal:15672", "http://shop.internal:15672"),
        ("shop.internal", "http://shop.internal:15672"),
        ("rabbit-12.shop.internal:15672", "http://rabbit-12.shop.internal:15672"),
        ("http://shop.internal:15672/rabbit/", "http://shop.internal:15672/rabbit"),
        ("[::1]:15672", "http://[::1]:15672"),
    ],
)
def test_a_target_that_is_allowed_becomes_an_address(target, url):
    """With the credentials and limits of its module."""
    settings = ONE.management(target)

    assert (url, "monitor", 10.0) == (settings.url, settings.username, settings.timeout)


@pytest.mark.parametrize(
    "target",
    [
        "evil.example:15672",
        "shopXinternal:15672",  # a dot in a name stands for itself
        "shop.internal:80",
        "shop.internal:15672.evil.example:15672",
        "rabbit-1.shop.internal:15672.evil.example",
        "rabbit-1.shop.internal:156720",
        "x.rabbit-1.shop.internal:15672",
        "127.0.0.1:15672",
        # Other programs may answer at other paths of the host.
        "http://shop.internal:15672/rabbit/x",
        "http://shop.internal:15672/rabbit/../x",
        "http://shop.internal:15672/rabbi",
        "http://rabbit-12.shop.internal:15672/rabbit",
        "http://[::1]:15672/x",
    ],
)
def test_a_target_of_somebody_elses_choice_is_refused(target):
    """Credentials are never sent to a host or a path that the configuration does not name."""
    with pytest.raises(UsageError):
        ONE.management(target)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "target= is missing; use target=HOST:PORT"),
        (
            "evil.example:15672",
            (
                "target 'evil.example:15672' is not allowed by this module; "
                "add it to `targets` of the module if it should be"
            ),
        ),
        ("https://shop.internal:15672", "target: scheme 'https' differs from the module's 'http'"),
        ("amqp://shop.internal:15672", "target: scheme 'amqp', expected http or https, as in"),
        ("u:p@shop.internal:15672", "target= may only contain host, port and path; credentials come from the module"),
        ("http://shop.internal:15672@evil:15672", "target= may only contain host, port and path"),
        ("evil:15672#shop.internal:15672", "target= may only contain host, port and path"),
        ("evil:15672?shop.internal:15672", "target= may only contain host, port and path"),
        ("evil:15672\\shop.internal:15672", "target= may only contain host, port and path"),
        ("shop.internal:15672\r\nX: y", "target= may only contain host, port and path"),
        ("shop.internal:port", "target: not an address"),
    ],
)
def test_a_refusal_says_why(target, message):
    """The reason is one line; malformed addresses are refused before parsing."""
    with pytest.raises(UsageError) as raised:
        ONE.management(target)

    assert str(raised.value).startswith(message)


PIECES = ("http://", "https://", "shop.internal", ":15672", "evil", "rabbit-1.shop.internal", "/", "\\", "@", "#", "?")


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=8).map("".join))
def test_whatever_is_requested_credentials_go_where_they_may(target):
    """The host is what the connecting library understands, not our own parser."""
    try:
        settings = ONE.management(target)
    except UsageError:
        return
    meant = parse_url(settings.url)

    assert re.fullmatch(r"(shop|rabbit-[0-9]+\.shop)\.internal", meant.host)
    assert (15672, None, "http") == (meant.port, meant.auth, meant.scheme)


def test_a_module_of_https_sends_nothing_in_the_clear():
    """Whoever asks for http gets a refusal."""
    module = ModuleSettings(targets=(".*",), scheme="https")

    assert "https://any:15671" == module.management("any").url
    with pytest.raises(UsageError):
        module.management("http://any:15671")
