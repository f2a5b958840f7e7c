"""Modules: how to read brokers that are named by who asks; a set of management settings without an address."""

import re
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from ackscope.address import Address, parse_management
from ackscope.cli import nearest
from ackscope.errors import ConfigError, UsageError
from ackscope.snapshot import FAMILIES
from exporter.broker.settings import AccessSettings, ManagementSettings

QUICK = ("overview", "nodes", "queues", "channels", "consumers", "connections", "health")

_PLAIN = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


class ModuleSettings(AccessSettings):
    r"""How to read a broker that is named by who asks, and which brokers may be named.

    Attributes:
        targets: brokers that this module's credentials may be sent to: `host:port` as it is, or a regular expression
            that the whole `host:port` must match, such as `rabbit-[0-9]+\.shop\.internal:15672`.
        scheme: http or https; a target of the other is refused.
        families: what is read of a broker, beside overview and nodes, without which the rest cannot be understood.
        at_once: readings by this module that may be under way at the same time.
    """

    targets: tuple[str, ...] = Field(min_length=1)
    scheme: Literal["http", "https"] = "http"
    families: tuple[str, ...] = Field(default=QUICK, min_length=1)
    at_once: int = Field(default=4, ge=1, le=64)

    @field_validator("targets")
    @classmethod
    def _are_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if "://" in text:
                raise ValueError(f"{text!r} is an address; write host:port, or a regular expression for it")
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is neither host:port nor a regular expression ({error})") from None
        return value

    @field_validator("families")
    @classmethod
    def _are_families(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in FAMILIES:
                raise ValueError(f"no family {name!r}{nearest(name, list(FAMILIES))}; known: {', '.join(FAMILIES)}")
        return value

    @property
    def all_families(self) -> tuple[str, ...]:
        """All families that are read: the version decides what a field means, and some are asked node by node."""
        return tuple(name for name in FAMILIES if name in {"overview", "nodes", *self.families})

    def management(self, target: str) -> ManagementSettings:
        """The settings to read this target with.

        Args:
            target: `host:port`, or an address such as `https://host:15671/prefix`, without credentials.

        Raises:
            UsageError: it is no address, or not one that this module may be used for.
        """
        address = self._allowed(target)
        return self.at(f"{address.where}{address.path}")

    def at(self, where: str) -> ManagementSettings:
        """The settings for a broker at `host:port/prefix`, whether it may be named or not.

        Raises:
            ConfigError: they do not go together with the module's scheme.
        """
        shared = {name: getattr(self, name) for name in AccessSettings.model_fields}
        try:
            return ManagementSettings.model_validate({**shared, "url": f"{self.scheme}://{where}"})
        except ValidationError as error:
            raise ConfigError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None

    def _allowed(self, target: str) -> Address:
        """What the target means, if credentials may be sent there."""
        if not target:
            raise UsageError("target= is missing; write target=HOST:PORT")
        if any(character in target for character in "@?#\\") or not target.isprintable() or " " in target:
            raise UsageError("target= may hold host, port and path only; credentials are those of the module")
        address = parse_management(target if "://" in target else f"{self.scheme}://{target}", "target")
        if address.scheme != self.scheme:
            raise UsageError(f"target: scheme {address.scheme!r}, this module has {self.scheme!r}")
        if not _HOST.fullmatch(address.host) or not any(_matches(item, address.where) for item in self.targets):
            raise UsageError(
                f"target {address.where[:200]!r} is none that this module may be used for; "
                "add it to `targets` of the module if it should be"
            )
        return address


def _matches(allowed: str, where: str) -> bool:
    # A name is meant as it stands: taken for a pattern, its dots would let any character through.
    if _PLAIN.fullmatch(allowed):
        return allowed.lower() == where.lower()
    return re.fullmatch(allowed, where, re.IGNORECASE) is not None
