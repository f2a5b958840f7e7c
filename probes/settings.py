"""Settings of the probes: what they send, how fast, and to which broker."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import Field, SecretStr, field_validator

from ackscope.address import Address, parse_amqp
from ackscope.cli import nearest
from ackscope.errors import UsageError
from ackscope.settings import Seconds, Settings, secret

DEFAULT_PREFIX = "ackscope.probe"
"""Every object that a probe makes on a broker has a name that starts with this and a dot."""

RATE_CAP = 5000
"""Messages per second and stream that no setting can exceed: a probe is never the load."""

SMALLEST_PAYLOAD, LARGEST_PAYLOAD = 32, 1_000_000
"""Bytes of a body: room for the probe's own mark, and no more than a production broker takes lightly."""

QueueType = Literal["classic", "quorum"]


@dataclass(frozen=True, slots=True)
class Server:
    """A broker to connect to, and how far its certificate is checked."""

    address: Address
    ca_file: Path | None = None
    verify: bool = True


class AmqpSettings(Settings):
    """Where the probes connect. The address may hold user and password; the other keys override it."""

    url: SecretStr
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

    def server(self) -> Server:
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
        return Server(address, self.ca_file, self.verify)


def full_url(address: Address) -> str:
    """The address with its password, for the pipe to the child process and nothing else."""
    credentials = f"{quote(address.username, safe='')}:{quote(address.password, safe='')}"
    return f"{address.scheme}://{credentials}@{address.where}/{quote(address.vhost, safe='')}"


class StreamSettings(Settings):
    """What the streams of every probe have in common; one stream a queue type.

    Attributes:
        rate: messages per second and stream.
        undecided_after: seconds without ack or nack after which a message counts as undecided.
        max_outstanding: messages that may wait for their confirm; at the bound the probe sends no more.
    """

    queue_types: tuple[QueueType, ...] = Field(default=("classic", "quorum"), min_length=1)
    rate: float = Field(default=5.0, gt=0, le=RATE_CAP)
    payload_bytes: int = Field(default=64, ge=SMALLEST_PAYLOAD, le=LARGEST_PAYLOAD)
    undecided_after: Seconds = Field(default=30.0, gt=0)
    max_outstanding: int = Field(default=1000, ge=1, le=50_000)


class ConfirmSettings(StreamSettings):
    """Of the confirm probe."""


class DeliverySettings(StreamSettings):
    """Of the delivery probe.

    Attributes:
        missing_after: seconds without a delivery after which a confirmed message counts as missing.
        prefetch: unacknowledged deliveries the broker may push to the probe's consumer.
    """

    rate: float = Field(default=2.0, gt=0, le=RATE_CAP)
    missing_after: Seconds = Field(default=30.0, gt=0)
    prefetch: int = Field(default=100, ge=1, le=2000)


NAMES = ("confirm", "delivery")
"""Every probe; each has a key of the same name below."""


class ProbesSettings(Settings):
    """Of all probes of one cluster."""

    enabled: tuple[str, ...] = NAMES
    prefix: str = Field(default=DEFAULT_PREFIX, min_length=1, max_length=100)
    confirm: ConfirmSettings = ConfirmSettings()
    delivery: DeliverySettings = DeliverySettings()

    @field_validator("enabled")
    @classmethod
    def _are_probes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in NAMES:
                raise ValueError(f"no probe {name!r}{nearest(name, list(NAMES))}; known: {', '.join(NAMES)}")
        return value
