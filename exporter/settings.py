"""The exporter's settings: one file, composed of what each room declares; checked before anything starts."""

import re
import ssl
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from ackscope.errors import AckscopeError, ConfigError
from ackscope.settings import Settings
from diagnosis.thresholds import Thresholds
from exporter.broker.client import ManagementClient
from exporter.broker.settings import AccessSettings, ManagementSettings
from exporter.exposition.settings import MetricsSettings
from exporter.history.settings import HistorySettings
from exporter.landing.settings import LandingSettings
from exporter.polling.settings import PollSettings
from exporter.targets.settings import ModuleSettings
from exporter.web.config import WebConfig
from probes.settings import AmqpSettings, ProbesSettings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LISTEN = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]/]+)):(?P<port>[0-9]{1,5})")


class ClusterSettings(Settings):
    """One cluster.

    Attributes:
        management: its management API, read with a user that has the `monitoring` tag.
        amqp: where probes publish and consume; without it the cluster is not probed.
    """

    management: ManagementSettings
    amqp: AmqpSettings | None = None

    @field_validator("management", "amqp")
    @classmethod
    def _resolves(cls, value: ManagementSettings | AmqpSettings | None) -> Any:
        """Address, password and certificates can be had: told now, and not at the first poll."""
        _one_password(value)
        try:
            if isinstance(value, ManagementSettings):
                check_access(value)
            elif value is not None:
                value.node_servers()
                _certificates(value.ca_file)
        except AckscopeError as error:
            raise ValueError(str(error).removeprefix("management.").removeprefix("amqp.")) from None
        return value


class ExporterSettings(Settings):
    """The whole file.

    Attributes:
        listen: where `/metrics` and the API are served, `host:port`.
        web_config: a file in the shape of Prometheus' web configuration: TLS and logins of our own port.
        clusters: cluster name -> how to reach it; the name is used in metrics, paths and pages.
        modules: module name -> how to read a broker that is named by who asks `/probe?module=NAME&target=HOST:PORT`.
        poll: how the management APIs are polled.
        metrics: what `/metrics` shows.
        landing: files for the pipeline; nothing is written without a directory.
        history: what the pipeline made of them, so that diagnosis knows what is usual.
        probes: what the probes send.
        diagnosis: the numbers that diagnosis judges by.
    """

    listen: str = "127.0.0.1:9419"
    web_config: Path | None = None
    clusters: dict[str, ClusterSettings] = Field(default={})
    modules: dict[str, ModuleSettings] = Field(default={})
    poll: PollSettings = PollSettings()
    metrics: MetricsSettings = MetricsSettings()
    landing: LandingSettings = LandingSettings()
    history: HistorySettings = HistorySettings()
    probes: ProbesSettings = ProbesSettings()
    diagnosis: Thresholds = Thresholds()

    @field_validator("listen")
    @classmethod
    def _is_host_and_port(cls, value: str) -> str:
        parse_listen(value)
        return value

    @field_validator("web_config")
    @classmethod
    def _is_good(cls, value: Path | None) -> Path | None:
        if value is not None:
            try:
                WebConfig.load(value)
            except ConfigError as error:
                raise ValueError(str(error)) from None
        return value

    @field_validator("clusters")
    @classmethod
    def _are_named(cls, value: dict[str, ClusterSettings]) -> dict[str, ClusterSettings]:
        for name in value:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name for a cluster; use letters, digits, dot, dash and underscore")
        return value

    @field_validator("modules")
    @classmethod
    def _resolve(cls, value: dict[str, ModuleSettings]) -> dict[str, ModuleSettings]:
        for name, module in value.items():
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name for a module; use letters, digits, dot, dash and underscore")
            try:
                _one_password(module)
                check_access(module.at("localhost:15672"))
            except (AckscopeError, ValueError) as error:
                raise ValueError(f"{name}: {str(error).removeprefix('management.')}") from None
        return value

    @model_validator(mode="after")
    def _has_something_to_do(self) -> Self:
        if not self.clusters and not self.modules:
            raise ValueError(
                "no cluster is named, and no module; write clusters: {shop: {management: {url: http://user:password@host:15672}}}"
            )
        return self

    @property
    def thresholds(self) -> Thresholds:
        """What diagnosis judges by: it knows the probes' queues by the prefix that the probes really use."""
        own = f"{self.probes.prefix}."
        if own in self.diagnosis.own_prefixes:
            return self.diagnosis
        return self.diagnosis.model_copy(update={"own_prefixes": (*self.diagnosis.own_prefixes, own)})


def check_access(settings: ManagementSettings) -> None:
    """See that everything is there that asking a management API takes.

    Raises:
        UsageError: the URL is not one.
        ConfigError: a file is missing or unfit.
    """
    ManagementClient(settings, "management").close()


def _one_password(value: AccessSettings | AmqpSettings | None) -> None:
    if value is not None and value.password is not None and value.password_file is not None:
        raise ValueError("both password and password_file are set; keep one")


def _certificates(file: Path | None) -> None:
    try:
        ssl.create_default_context(cafile=file)
    except OSError:
        raise ConfigError(
            f"ca_file: {file} is no readable file of PEM certificates; "
            "give that of the authority that signed the broker's"
        ) from None


def parse_listen(text: str) -> tuple[str, int]:
    """Read `host:port` or `[address]:port`; port 0 takes a free one.

    Raises:
        ValueError: saying what is expected.
    """
    found = _LISTEN.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f"{text!r} is not host:port; write 127.0.0.1:9419, or 0.0.0.0:9419 for all addresses")
    return (found["six"] or found["host"], int(found["port"]))
