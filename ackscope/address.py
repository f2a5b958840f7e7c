"""Addresses of brokers. They are shown without their password."""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from ackscope.errors import UsageError

_PORTS = {"amqp": 5672, "amqps": 5671, "http": 15672, "https": 15671}


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a broker, with credentials.

    Attributes:
        scheme: amqp, amqps, http or https.
        vhost: virtual host of an AMQP address ("/" when the path is empty); a path prefix is in `path`.
        path: path prefix of a management address, without a trailing slash.
    """

    scheme: str
    host: str
    port: int
    username: str
    password: str = field(repr=False)
    vhost: str = "/"
    path: str = ""

    @property
    def tls(self) -> bool:
        """Whether the address asks for TLS."""
        return self.scheme in {"amqps", "https"}

    @property
    def where(self) -> str:
        """Host and port, for messages."""
        return host_and_port(self.host, self.port)

    @property
    def url(self) -> str:
        """The address without user and password, for commands that other people run."""
        return f"{self.scheme}://{self.where}{self.path}"

    def __str__(self) -> str:
        """The address without its password."""
        return f"{self.scheme}://{self.username}@{self.where}{self.path}"


def host_and_port(host: str, port: int) -> str:
    """Host and port as in a URL, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_ambiguous(url: str) -> bool:
    """Whether an @ does not end the credentials, so that a part of a password could be read as the host."""
    authority, *rest = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)
    return authority.count("@") > 1 or any("@" in text for text in rest)


def parse_address(url: str, *, schemes: tuple[str, ...], what: str) -> Address:
    """Parse an address such as `amqp://user:password@host:5672/vhost`.

    Args:
        url: the address; user and password default to guest, as everywhere in RabbitMQ.
        schemes: the valid schemes.
        what: name of the option or key, for messages.

    Raises:
        UsageError: the address is invalid; the message has `what` and an example, never the password.
    """
    example = f"{schemes[0]}://user:password@host:{_PORTS[schemes[0]]}"
    if _is_ambiguous(url):
        raise UsageError(
            f"{what}: a user name, password or virtual host with @ / # or ? in an address must be percent-encoded "
            "(%40 %2F %23 %3F)"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # The error would quote the text, which may be a part of a password.
        raise UsageError(f"{what}: not an address, or a port above 65535; expected {example}") from None
    if parts.scheme not in schemes:
        got = f"scheme {parts.scheme!r}" if "://" in url else "no scheme"
        raise UsageError(f"{what}: {got}, expected {' or '.join(schemes)}, as in {example}")
    if not parts.hostname:
        raise UsageError(f"{what}: no host, expected {example}")
    amqp = parts.scheme.startswith("amqp")
    return Address(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        username=unquote(parts.username) if parts.username else "guest",
        password=unquote(parts.password) if parts.password is not None else "guest",
        vhost=(unquote(parts.path[1:]) or "/") if amqp else "/",
        path="" if amqp else parts.path.rstrip("/"),
    )


def parse_amqp(url: str, what: str = "--amqp") -> Address:
    """Parse an AMQP address. Its path is the virtual host; `/%2F` and an empty path mean `/`."""
    return parse_address(url, schemes=("amqp", "amqps"), what=what)


def parse_management(url: str, what: str = "--management") -> Address:
    """Parse an address of the management API. Its path is a prefix, as in `http://host:15672/rabbit`."""
    return parse_address(url, schemes=("http", "https"), what=what)
