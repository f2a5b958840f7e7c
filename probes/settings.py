"""Settings of the probes: what they send, how fast, and to which broker."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args
from urllib.parse import quote, urlsplit

from pydantic import Field, SecretStr, field_validator

from ackscope.address import Address, parse_amqp
from ackscope.cli import nearest
from ackscope.errors import UsageError
from ackscope.settings import Seconds, Settings, secret

DEFAULT_PREFIX = "ackscope.probe"
"""Names of all objects of probes on a broker begin with this prefix and a dot."""

RATE_CAP = 5000
"""Maximum messages per second of a stream: a probe must never be a load."""

SMALLEST_PAYLOAD, LARGEST_PAYLOAD = 32, 1_000_000
"""Limits of the message size in bytes: enough for the probe's own mark, and cheap for a production broker."""

_NODE = re.compile(r"[A-Za-z0-9_.@-]{1,200}")

QueueType = Literal["classic", "quorum"]
SettleQueueType = Literal["classic", "quorum", "stream"]
ConfirmStreamName = Literal["unroutable", "transient", "classic", "classic-large", "quorum", "stream"]


@dataclass(frozen=True, slots=True)
class AmqpServer:
    """A broker to connect to, and how its certificate is verified.

    Attributes:
        tls_name: the name in its certificate, if it differs from the host (behind a relay).
    """

    address: Address
    ca_file: Path | None = None
    verify: bool = True
    tls_name: str | None = None


class AmqpSettings(Settings):
    """Where the probes connect. The address may hold user and password; the other keys override it.

    Attributes:
        nodes: node name -> its own address, for the probes that measure node by node; user, password and virtual host
            are those of the cluster where the address names none.
    """

    url: SecretStr
    nodes: dict[str, SecretStr] = Field(default={})
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    verify: bool = True

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

    def node_servers(self) -> dict[str, AmqpServer]:
        """The address of each node with its credentials resolved, by the name of the node.

        Raises:
            ConfigError: the password file cannot be read.
        """
        main = self.server()
        return {
            name: AmqpServer(_filled(url, main.address), self.ca_file, self.verify) for name, url in self.nodes.items()
        }

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
        return AmqpServer(address, self.ca_file, self.verify)


def _filled(url: SecretStr, main: Address) -> Address:
    text = url.get_secret_value()
    own, parts = parse_amqp(text), urlsplit(text)
    return replace(
        own,
        username=main.username if parts.username is None else own.username,
        password=main.password if parts.password is None else own.password,
        vhost=own.vhost if parts.path.strip("/") else main.vhost,
    )


def full_url(address: Address) -> str:
    """The address with its password, only for the pipe to the child process."""
    credentials = f"{quote(address.username, safe='')}:{quote(address.password, safe='')}"
    return f"{address.scheme}://{credentials}@{address.where}/{quote(address.vhost, safe='')}"


class SendingSettings(Settings):
    """Settings of every probe that sends messages.

    Attributes:
        rate: messages per second and stream.
        payload_bytes: size of a message's body.
        undecided_after: seconds without ack or nack after which a message counts as undecided.
        max_outstanding: messages that may wait for their confirm; at the bound the probe sends no more.
    """

    rate: float = Field(default=5.0, gt=0, le=RATE_CAP)
    payload_bytes: int = Field(default=64, ge=SMALLEST_PAYLOAD, le=LARGEST_PAYLOAD)
    undecided_after: Seconds = Field(default=30.0, gt=0)
    max_outstanding: int = Field(default=1000, ge=1, le=50_000)


class StreamSettings(SendingSettings):
    """Settings of probes with one stream for each queue type.

    Attributes:
        queue_types: a stream of messages, and a queue, for each.
    """

    queue_types: tuple[QueueType, ...] = Field(default=("classic", "quorum"), min_length=1)


class ConfirmSettings(SendingSettings):
    """Settings of the confirm probe.

    Attributes:
        streams: paths through the broker that are measured side by side; the difference of two is the cost of a layer.
        rate: messages per second of the streams `classic` and `quorum`.
        control_rate: messages per second of each of the others.
        payload_bytes: size of a message's body; of `classic-large` at least 4096, from where on it is stored elsewhere.
    """

    streams: tuple[ConfirmStreamName, ...] = Field(default=get_args(ConfirmStreamName), min_length=1)
    control_rate: float = Field(default=1.0, gt=0, le=RATE_CAP)


class DeliverySettings(StreamSettings):
    """Settings of the delivery probe.

    Attributes:
        missing_after: seconds without a delivery after which a confirmed message counts as missing.
        prefetch: unacknowledged deliveries the broker may push to the probe's consumer.
    """

    rate: float = Field(default=1.0, gt=0, le=RATE_CAP)
    missing_after: Seconds = Field(default=30.0, gt=0)
    prefetch: int = Field(default=100, ge=1, le=2000)


class NackSettings(SendingSettings):
    """Settings of the nack probe, whose queue refuses every message.

    Attributes:
        rate: messages per second.
    """

    rate: float = Field(default=0.5, gt=0, le=100)
    max_outstanding: int = Field(default=100, ge=1, le=1000)


class RoundSettings(Settings):
    """Settings of probes that repeat timed steps.

    Attributes:
        interval: time from one round to the next.
        timeout: longest time that one step may take; a step that takes longer has failed.
    """

    interval: Seconds = Field(ge=0.01, le=3600)
    timeout: Seconds = Field(default=10.0, ge=0.1, le=120)


class HandshakeSettings(RoundSettings):
    """Settings of the handshake probe; each round opens and closes one connection."""

    interval: Seconds = Field(default=30.0, ge=0.1, le=3600)


class RttSettings(RoundSettings):
    """Settings of the rtt probe."""

    interval: Seconds = Field(default=1.0, ge=0.01, le=3600)


class RedeliverySettings(RoundSettings):
    """Settings of the redelivery probe.

    Attributes:
        queue_types: a pair of queues for each.
        connection_loss_every: time from one cut of the probe's own connection to the next: the broker logs a warning
            for each; 0 cuts none.
    """

    interval: Seconds = Field(default=10.0, ge=0.1, le=3600)
    queue_types: tuple[QueueType, ...] = Field(default=("classic", "quorum"), min_length=1)
    connection_loss_every: Seconds = Field(default=600.0, ge=0, le=86_400)


class PrefetchSettings(RoundSettings):
    """Settings of the prefetch probe.

    Attributes:
        queue_types: a consumer, and a queue, for each.
        prefetch: unacknowledged deliveries that the probe's consumer allows.
    """

    interval: Seconds = Field(default=10.0, ge=0.1, le=3600)
    queue_types: tuple[QueueType, ...] = Field(default=("classic", "quorum"), min_length=1)
    prefetch: int = Field(default=5, ge=1, le=100)


class SettleSettings(SendingSettings):
    """Settings of the settle probe (AMQP 1.0).

    Attributes:
        rate: messages per second and stream.
        queue_types: a stream of messages, and a queue, for each.
    """

    rate: float = Field(default=1.0, gt=0, le=RATE_CAP)
    queue_types: tuple[SettleQueueType, ...] = Field(default=get_args(SettleQueueType), min_length=1)


class RejectSettings(NackSettings):
    """Settings of the reject probe (AMQP 1.0), whose queue refuses every message."""


class OutcomesSettings(RoundSettings):
    """Settings of the outcomes probe (AMQP 1.0).

    Attributes:
        queue_types: a pair of queues for each.
        disruption_every: time from one deletion of a queue under the probe's own link, and one cut of its own
            connection, to the next: the broker logs each; 0 does neither.
    """

    interval: Seconds = Field(default=10.0, ge=0.1, le=3600)
    queue_types: tuple[QueueType, ...] = Field(default=("classic", "quorum"), min_length=1)
    disruption_every: Seconds = Field(default=600.0, ge=0, le=86_400)


AMQP10_NAMES = ("settle", "reject", "outcomes")
"""Probes that speak AMQP 1.0. They need the extra `amqp10`, and are run only where they are asked for."""

_AMQP091_NAMES = ("handshake", "rtt", "confirm", "delivery", "redelivery", "prefetch", "nack")

NAMES = (*_AMQP091_NAMES, *AMQP10_NAMES)
"""All probes; each has a settings key of the same name below."""

NODE_NAMES = ("handshake", "rtt", "confirm")
"""Probes that also run against every node with its own address."""


class ProbesSettings(Settings):
    """Settings of all probes of one cluster.

    Attributes:
        priority: nice value of the process that runs the probes; a negative one needs CAP_SYS_NICE; none: inherited.
        realtime: run this process before all ordinary ones (SCHED_RR), so that a busy machine does not delay it; needs
            CAP_SYS_NICE. It takes a few percent of a core.
        cores: numbers of the CPU cores that this process may use; an empty list means all.
    """

    enabled: tuple[str, ...] = _AMQP091_NAMES
    prefix: str = Field(default=DEFAULT_PREFIX, min_length=1, max_length=100)
    priority: int | None = Field(default=None, ge=-20, le=19)
    realtime: bool = False
    cores: tuple[Annotated[int, Field(ge=0, le=4095)], ...] = ()
    handshake: HandshakeSettings = HandshakeSettings()
    rtt: RttSettings = RttSettings()
    confirm: ConfirmSettings = ConfirmSettings()
    delivery: DeliverySettings = DeliverySettings()
    redelivery: RedeliverySettings = RedeliverySettings()
    prefetch: PrefetchSettings = PrefetchSettings()
    nack: NackSettings = NackSettings()
    settle: SettleSettings = SettleSettings()
    reject: RejectSettings = RejectSettings()
    outcomes: OutcomesSettings = OutcomesSettings()

    @field_validator("enabled")
    @classmethod
    def _are_probes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in NAMES:
                raise ValueError(f"unknown probe {name!r}{nearest(name, list(NAMES))}; known: {', '.join(NAMES)}")
        return value
