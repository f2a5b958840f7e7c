"""Settings of the Prometheus endpoints of one cluster's nodes, and the choice between the two sources."""

from enum import StrEnum

from pydantic import Field, ValidationError, field_serializer, field_validator

from ackscope.address import parse_management
from ackscope.errors import ConfigError, UsageError
from ackscope.log import redact
from exporter.broker.settings import AccessSettings, ManagementSettings

DEFAULT_PORT = 15692
"""Port of the plugin rabbitmq_prometheus."""


class SourceChoice(StrEnum):
    """Which sources of a cluster are read.

    AUTO: the management API, and the Prometheus endpoints if the broker collects no statistics, or if no management
    API is configured; with configured endpoints also the totals of AMQP 1.0 clients; on suspicion also the exchanges
    that channels publish to. MANAGEMENT, PROMETHEUS: only that one. BOTH: both, and they are compared.
    """

    AUTO = "auto"
    MANAGEMENT = "management"
    PROMETHEUS = "prometheus"
    BOTH = "both"


class PrometheusSettings(AccessSettings):
    """Prometheus endpoints of the nodes (plugin rabbitmq_prometheus) and how to access them.

    Attributes:
        urls: one for each node, such as `http://host:15692`; a path is a prefix. Each node reports only itself.
            Default: port 15692 of each node that the management API names.
    """

    urls: tuple[str, ...] = Field(default=(), repr=False)

    @field_serializer("urls")
    def _without_passwords(self, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(redact, urls))

    @field_validator("urls")
    @classmethod
    def _are_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for url in value:
            try:
                address = parse_management(url, "urls")
            except UsageError as error:
                raise ValueError(str(error).removeprefix("urls: ")) from None
            if address.path.endswith(("/metrics", "/metrics/per-object", "/metrics/detailed")):
                raise ValueError("ends with the path of the metrics; give the address without it: http://host:15692")
        if len(set(value)) < len(value):
            raise ValueError("names an address twice; list each node once")
        return value

    def at(self, url: str) -> ManagementSettings:
        """The settings to read one endpoint.

        Raises:
            ConfigError: they contradict its address.
        """
        shared = {name: getattr(self, name) for name in AccessSettings.model_fields}
        try:
            return ManagementSettings.model_validate({**shared, "url": with_port(url)})
        except ValidationError as error:
            raise ConfigError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None

    def has_credentials(self, url: str) -> bool:
        """Whether requests to this address carry credentials. By default the plugin asks for none."""
        return self.bearer or self.username is not None or "@" in url.partition("://")[2].partition("/")[0]


def with_port(url: str) -> str:
    """Return the address with the default port of the plugin if it names none."""
    scheme, _, rest = url.partition("://")
    where, slash, path = rest.partition("/")
    host = where.rpartition("@")[2]
    has_port = ":" in host.rpartition("]")[2] if host.startswith("[") else ":" in host
    return url if has_port else f"{scheme}://{where}:{DEFAULT_PORT if scheme == 'http' else 15691}{slash}{path}"
