"""Settings of the probes: what they send, how fast, and to which broker."""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import Field, SecretStr, create_model, field_validator

from ackscope.address import Address, parse_amqp
from ackscope.cli import nearest
from ackscope.errors import ConfigError, UsageError
from ackscope.settings import Settings, secret
from probes.catalogue import PROBES
from probes.catalogue.probe import Probe

DEFAULT_PREFIX = "ackscope.probe"
"""Names of all objects of probes on a broker begin with this prefix and a dot."""

_NODE = re.compile(r"[A-Za-z0-9_.@-]{1,200}")


@dataclass(frozen=True, slots=True)
class AmqpServer:
    """A broker to connect to, and how its certificate is verified.

    Attributes:
        tls_name: the name in its certificate, if it differs from the host (behind a relay).
        stream_port: port of the stream protocol; None: 5552, or 5551 with TLS.
        password_file: file whose first line is the password; it may change at any time.
    """

    address: Address
    ca_file: Path | None = None
    verify: bool = True
    tls_name: str | None = None
    stream_port: int | None = None
    password_file: Path | None = None

    def password(self) -> str:
        """The password for a login now: as the file has it, or that of the address while the file has none."""
        with suppress(ConfigError):
            return secret(None, self.password_file, "amqp.password_file") or self.address.password
        return self.address.password

    @property
    def streams(self) -> "AmqpServer":
        """The same broker at its port of the stream protocol."""
        port = self.stream_port or usual_stream_port(tls=self.address.tls)
        return replace(self, address=replace(self.address, port=port))


def usual_stream_port(*, tls: bool) -> int:
    """The port on which a broker serves the stream protocol unless configured otherwise."""
    return 5551 if tls else 5552


class AmqpSettings(Settings):
    """Where the probes connect. The address may hold user and password; the other keys override it.

    Attributes:
        nodes: node name -> its own address, for the probes that measure node by node; user, password and virtual host
            are those of the cluster where the address names none.
        stream_port: port of the stream protocol on the host of `url`, for the probe `streaming`; TLS as in `url`; none:
            5552, or 5551 with TLS.
    """

    url: SecretStr
    nodes: dict[str, SecretStr] = Field(default={})
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    verify: bool = True
    stream_port: int | None = Field(default=None, ge=1, le=65_535)

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, value: SecretStr) -> SecretStr:
        try:
            parse_amqp(value.get_secret_value(), "url")
        except UsageError as error:
            raise ValueError(str(error).removeprefix("url: ")) from None
        return value

    @field_validator("nodes")
    @classmethod
    def _are_addresses(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, url in value.items():
            if not _NODE.fullmatch(name):
                raise ValueError(f"invalid node name {name!r}; use the broker's form, such as rabbit@one")
            try:
                parse_amqp(url.get_secret_value(), name)
            except UsageError as error:
                raise ValueError(str(error)) from None
        return value

    def servers(self) -> dict[str, AmqpServer]:
        """Every address with its credentials resolved: that of the cluster under "", others by the name of the node.

        Raises:
            ConfigError: the password file cannot be read.
        """
        main = self.server()
        return {"": main, **{name: _of_node(url, main) for name, url in self.nodes.items()}}

    def server(self) -> AmqpServer:
        """The broker with its credentials resolved.

        Raises:
            ConfigError: the password file cannot be read.
        """
        base = parse_amqp(self.url.get_secret_value())
        password = secret(self.password, self.password_file, "amqp.password_file")
        address = Address(
            scheme=base.scheme,
            host=base.host,
            port=base.port,
            username=self.username or base.username,
            password=base.password if password is None else password,
            vhost=base.vhost,
        )
        return AmqpServer(
            address, self.ca_file, self.verify, stream_port=self.stream_port, password_file=self.password_file
        )


def _of_node(url: SecretStr, cluster: AmqpServer) -> AmqpServer:
    text, main = url.get_secret_value(), cluster.address
    own, parts = parse_amqp(text), urlsplit(text)
    address = replace(
        own,
        username=main.username if parts.username is None else own.username,
        password=main.password if parts.password is None else own.password,
        vhost=own.vhost if parts.path.strip("/") else main.vhost,
    )
    return replace(cluster, address=address, password_file=cluster.password_file if parts.password is None else None)


def full_url(address: Address) -> str:
    """The address with its password, only for the pipe to the child process."""
    credentials = f"{quote(address.username, safe='')}:{quote(address.password, safe='')}"
    return f"{address.scheme}://{credentials}@{address.where}/{quote(address.vhost, safe='')}"


class _EachProbe(Settings):
    """Base with one field for each probe of the catalogue, with its settings."""


if not TYPE_CHECKING:
    _EachProbe = create_model(
        "_EachProbe",
        __base__=_EachProbe,
        **{name: (probe.settings, probe.settings()) for name, probe in PROBES.items()},
    )

P = TypeVar("P", bound=Settings)


class ProbesSettings(_EachProbe):
    """Settings of all probes of one cluster.

    Attributes:
        priority: nice value of the process that runs the probes; a negative one needs CAP_SYS_NICE; none: inherited.
        realtime: run this process before all ordinary ones (SCHED_RR), so that a busy machine does not delay it; needs
            CAP_SYS_NICE. It takes a few percent of a core.
        cores: numbers of the CPU cores that this process may use; an empty list means all.
    """

    enabled: tuple[str, ...] = tuple(name for name, probe in PROBES.items() if probe.by_default)
    prefix: str = Field(default=DEFAULT_PREFIX, min_length=1, max_length=100)
    priority: int | None = Field(default=None, ge=-20, le=19)
    realtime: bool = False
    cores: tuple[Annotated[int, Field(ge=0, le=4095)], ...] = ()

    @field_validator("enabled")
    @classmethod
    def _are_probes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in PROBES:
                raise ValueError(f"unknown probe {name!r}{nearest(name, list(PROBES))}; known: {', '.join(PROBES)}")
        return value

    def of(self, probe: Probe[P]) -> P:
        """Return the settings of one probe."""
        own: P = getattr(self, probe.name)
        return own
