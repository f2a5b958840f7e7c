"""Modules: management settings without an address, for brokers named in the query."""

import re
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from ackscope.address import Address, parse_management
from ackscope.cli import nearest
from ackscope.errors import ConfigError, UsageError
from ackscope.settings import pattern_problem
from ackscope.snapshot import FAMILIES
from exporter.broker.settings import AccessSettings, ManagementSettings

QUICK = ("overview", "nodes", "queues", "channels", "consumers", "connections", "health")

_PLAIN = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


class ModuleSettings(AccessSettings):
    r"""How to read brokers named in the query, and which ones are allowed.

    Attributes:
        targets: brokers that this module's credentials may be sent to: `host:port` literally, or a regular expression
            that must match the whole `host:port`, such as `rabbit-[0-9]+\.shop\.internal:15672`. A path after it, as in
            `proxy:443/rabbit`, is literal; without one, the management API is at the root of the host.
        scheme: http or https; a target with the other scheme is rejected.
        families: endpoint families to read, in addition to overview and nodes, which are always needed.
        at_once: limit of concurrent reads by this module.
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
                raise ValueError(f"invalid target {text!r}: a URL; use host:port, or a regular expression for it")
            problem = pattern_problem(text.partition("/")[0])
            if problem is not None:
                raise ValueError(
                    f"invalid target {text[:80]!r}: neither host:port nor a regular expression ({problem})"
                )
        return value

    @field_validator("families")
    @classmethod
    def _are_families(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in FAMILIES:
                raise ValueError(
                    f"unknown family {name!r}{nearest(name, list(FAMILIES))}; known: {', '.join(FAMILIES)}"
                )
        return value

    @property
    def all_families(self) -> tuple[str, ...]:
        """All families to read: overview for the version, nodes because some endpoints are read per node."""
        return tuple(name for name in FAMILIES if name in {"overview", "nodes", *self.families})

    def management(self, target: str) -> ManagementSettings:
        """The settings to read a target.

        Args:
            target: `host:port`, or a URL such as `https://host:15671/prefix`, without credentials.

        Raises:
            UsageError: malformed target, or not allowed by this module.
        """
        address = self._allowed(target)
        return self.at(f"{address.where}{address.path}")

    def at(self, where: str) -> ManagementSettings:
        """The settings for a broker at `host:port/prefix`, without checking whether it is allowed.

        Raises:
            ConfigError: they contradict the module's scheme.
        """
        shared = {name: getattr(self, name) for name in AccessSettings.model_fields}
        try:
            return ManagementSettings.model_validate({**shared, "url": f"{self.scheme}://{where}"})
        except ValidationError as error:
            raise ConfigError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None

    def _allowed(self, target: str) -> Address:
        """The address of a target, if it is allowed."""
        if not target:
            raise UsageError("target= is missing; use target=HOST:PORT")
        if any(character in target for character in "@?#\\") or not target.isprintable() or " " in target:
            raise UsageError("target= may only contain host, port and path; credentials come from the module")
        address = parse_management(target if "://" in target else f"{self.scheme}://{target}", "target")
        if address.scheme != self.scheme:
            raise UsageError(f"target: scheme {address.scheme!r} differs from the module's {self.scheme!r}")
        where = address.where + address.path
        if not _HOST.fullmatch(address.host) or not any(_matches(item, address) for item in self.targets):
            raise UsageError(
                f"target {where[:200]!r} is not allowed by this module; add it to `targets` of the module if "
                "it should be"
            )
        return address


def _matches(allowed: str, address: Address) -> bool:
    # Other programs may answer at other paths of the same host: the credentials are not for them.
    place, slash, path = allowed.partition("/")
    if address.path != slash + path.rstrip("/") and not (path == "" and address.path == ""):
        return False
    # A plain name is compared literally: as a pattern, its dots would match any character.
    if _PLAIN.fullmatch(place):
        return place.lower() == address.where.lower()
    return re.fullmatch(place, address.where, re.IGNORECASE) is not None
