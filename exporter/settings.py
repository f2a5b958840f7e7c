"""The exporter's settings: one YAML file, composed of each room's settings, validated before anything starts."""

import re
import ssl
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from ackscope.clock import Clock
from ackscope.errors import AckscopeError, ConfigError
from ackscope.settings import Settings
from diagnosis.thresholds import Thresholds
from exporter.broker.client import ManagementClient
from exporter.broker.prometheus.endpoint import MetricsEndpoint
from exporter.broker.prometheus.reader import MetricsReader
from exporter.broker.prometheus.settings import PrometheusSettings, SourceChoice
from exporter.broker.settings import AccessSettings, ManagementSettings
from exporter.delivery.settings import FindingDeliverySettings
from exporter.discovery.settings import DiscoverySettings
from exporter.exposition.settings import MetricsSettings
from exporter.history.settings import HistorySettings
from exporter.landing.settings import LandingSettings
from exporter.otlp.settings import OtlpSettings
from exporter.polling.settings import PollSettings
from exporter.targets.settings import ModuleSettings
from exporter.triage.settings import TriageSettings
from exporter.web.config import WebConfig
from probes.settings import AmqpSettings, ProbesSettings

CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LISTEN = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]/]+)):(?P<port>[0-9]{1,5})")


class ClusterSettings(Settings):
    """One cluster.

    Attributes:
        management: the management API, read as a user with the `monitoring` tag. Without it, `prometheus.urls` is
            needed, and only figures are known.
        prometheus: Prometheus endpoints of the nodes (plugin rabbitmq_prometheus), a second source of figures.
        sources: auto, management, prometheus or both. auto reads the Prometheus endpoints where the broker collects no
            statistics, or where there is no management API; configured ones also for the totals of AMQP 1.0 clients.
            While messages are lost without a route, or a consumer may publish to its own queue, it also asks them, or
            port 15692 of the nodes if that answers, which channel publishes to which exchange. both reads and compares
            the two.
        amqp: where probes publish and consume. If unset, the cluster is not probed.
    """

    management: ManagementSettings | None = None
    prometheus: PrometheusSettings = PrometheusSettings()
    sources: SourceChoice = SourceChoice.AUTO
    amqp: AmqpSettings | None = None

    @property
    def access(self) -> ManagementSettings:
        """How to reach the management API; without one, the first Prometheus endpoint."""
        return self.management or self.prometheus.at(self.prometheus.urls[0])

    def metrics(self, clock: Clock, what: str) -> MetricsReader | None:
        """Return a reader of the Prometheus endpoints; None if they are no source.

        Args:
            clock: dates its readings.
            what: name of these settings in error messages, such as `clusters.shop.prometheus`.

        Raises:
            UsageError: invalid address.
            ConfigError: a file of the settings cannot be used.
        """
        if self.sources is SourceChoice.MANAGEMENT:
            return None
        host = None if self.management is None else self.management.address().host
        return MetricsReader(self.prometheus, self.sources, host, clock, what)

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if self.management is None and not self.prometheus.urls:
            raise ValueError(
                "no source; set management.url, or prometheus.urls if only the Prometheus endpoints can be reached"
            )
        if self.management is None and self.sources in {SourceChoice.MANAGEMENT, SourceChoice.BOTH}:
            raise ValueError(f"sources is {self.sources}, and no management API is configured; set management.url")
        if self.sources is SourceChoice.PROMETHEUS and not self.prometheus.urls:
            raise ValueError("sources is prometheus, and no endpoint is configured; set prometheus.urls")
        return self

    @field_validator("prometheus")
    @classmethod
    def _endpoints_resolve(cls, value: PrometheusSettings) -> PrometheusSettings:
        _one_password(value)
        try:
            for url in value.urls:
                MetricsEndpoint(value, url).close()
        except AckscopeError as error:
            raise ValueError(str(error).removeprefix("prometheus.")) from None
        return value

    @field_validator("management", "amqp")
    @classmethod
    def _resolves(cls, value: ManagementSettings | AmqpSettings | None) -> Any:
        """Check at startup, not at the first poll, that address, password and certificates are usable."""
        _one_password(value)
        try:
            if isinstance(value, ManagementSettings):
                check_access(value)
            elif value is not None:
                value.servers()
                _certificates(value.ca_file)
        except AckscopeError as error:
            raise ValueError(str(error).removeprefix("management.").removeprefix("amqp.")) from None
        return value


class ExporterSettings(Settings):
    """The whole file.

    Attributes:
        listen: address of `/metrics` and the API, `host:port`.
        allowed_hosts: names, without port, that requests may be for if `listen` is on loopback, besides those of
            loopback. A proxy on this machine passes requests on under them.
        web_config: path of a Prometheus web configuration file: TLS and basic auth for the exporter's own port.
        clusters: cluster name -> how to reach it. The name appears in metrics, paths and pages.
        discovery: clusters that are found, in addition to `clusters`.
        modules: module name -> how to read a broker given by `/probe?module=NAME&target=HOST:PORT`.
        poll: how the management APIs are polled.
        metrics: what `/metrics` shows.
        landing: landing files for the pipeline. Nothing is written unless a directory is set.
        history: the pipeline's rollups, for baselines in diagnosis.
        triage: what people say about findings.
        delivery: who is notified of findings.
        otlp: export of the metrics to an OpenTelemetry collector.
        probes: what the probes send.
        diagnosis: thresholds of the diagnosis rules.
    """

    listen: str = "127.0.0.1:9419"
    allowed_hosts: tuple[str, ...] = ()
    web_config: Path | None = None
    clusters: dict[str, ClusterSettings] = Field(default={})
    discovery: DiscoverySettings = DiscoverySettings()
    modules: dict[str, ModuleSettings] = Field(default={})
    poll: PollSettings = PollSettings()
    metrics: MetricsSettings = MetricsSettings()
    landing: LandingSettings = LandingSettings()
    history: HistorySettings = HistorySettings()
    triage: TriageSettings = TriageSettings()
    delivery: FindingDeliverySettings = FindingDeliverySettings()
    otlp: OtlpSettings = OtlpSettings()
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
            if not CLUSTER_NAME.fullmatch(name):
                raise ValueError(f"invalid cluster name {name!r}; use letters, digits, dot, dash and underscore")
        return value

    @field_validator("modules")
    @classmethod
    def _resolve(cls, value: dict[str, ModuleSettings]) -> dict[str, ModuleSettings]:
        for name, module in value.items():
            if not CLUSTER_NAME.fullmatch(name):
                raise ValueError(f"invalid module name {name!r}; use letters, digits, dot, dash and underscore")
            try:
                _one_password(module)
                check_access(module.at("localhost:15672"))
            except (AckscopeError, ValueError) as error:
                raise ValueError(f"{name}: {str(error).removeprefix('management.')}") from None
        return value

    @model_validator(mode="after")
    def _has_something_to_do(self) -> Self:
        if not self.clusters and not self.modules and not self.discovery.kubernetes.enabled:
            raise ValueError(
                "no cluster and no module configured; add clusters: {shop: {management: "
                "{url: http://user:password@host:15672}}}"
            )
        return self

    @property
    def thresholds(self) -> Thresholds:
        """Thresholds of diagnosis, with the prefix of the probe queues added to `own_prefixes`."""
        own = f"{self.probes.prefix}."
        if own in self.diagnosis.own_prefixes:
            return self.diagnosis
        return self.diagnosis.model_copy(update={"own_prefixes": (*self.diagnosis.own_prefixes, own)})


def check_access(settings: ManagementSettings) -> None:
    """Check that everything needed to query a management API is present.

    Raises:
        UsageError: invalid URL.
        ConfigError: a file is missing or unusable.
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
            f"ca_file: {file} is not a readable file of PEM certificates; use the certificate of the CA that "
            "signed the broker's"
        ) from None


def parse_listen(text: str) -> tuple[str, int]:
    """Parse `host:port` or `[address]:port`; port 0 picks a free one.

    Raises:
        ValueError: the text is malformed; the message says what is expected.
    """
    found = _LISTEN.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise ValueError(
            f"invalid listen address {text!r}; use host:port, such as 127.0.0.1:9419, or 0.0.0.0:9419 for all "
            "interfaces"
        )
    return (found["six"] or found["host"], int(found["port"]))
