"""The exporter's settings: one file, composed of what each room declares; checked before anything starts."""

import re
from typing import Any

from pydantic import Field, field_validator

from ackscope.errors import AckscopeError
from ackscope.settings import Settings
from diagnosis.thresholds import Thresholds
from exporter.broker.settings import ManagementSettings
from exporter.collectors.settings import MetricsSettings
from exporter.landing.settings import LandingSettings
from exporter.polling.settings import PollSettings
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
        """Address and password can be had: told now, and not at the first poll."""
        try:
            if isinstance(value, ManagementSettings):
                value.address("management")
            elif value is not None:
                value.server()
        except AckscopeError as error:
            raise ValueError(str(error).removeprefix("management.").removeprefix("amqp.")) from None
        return value


class ExporterSettings(Settings):
    """The whole file.

    Attributes:
        listen: where `/metrics` and the API are served, `host:port`.
        clusters: cluster name -> how to reach it; the name is used in metrics, paths and pages.
        poll: how the management APIs are polled.
        metrics: what `/metrics` shows.
        landing: files for the pipeline; nothing is written without a directory.
        probes: what the probes send.
        diagnosis: the numbers that diagnosis judges by.
    """

    listen: str = "127.0.0.1:9419"
    clusters: dict[str, ClusterSettings] = Field(default={}, validate_default=True)
    poll: PollSettings = PollSettings()
    metrics: MetricsSettings = MetricsSettings()
    landing: LandingSettings = LandingSettings()
    probes: ProbesSettings = ProbesSettings()
    diagnosis: Thresholds = Thresholds()

    @field_validator("listen")
    @classmethod
    def _is_host_and_port(cls, value: str) -> str:
        parse_listen(value)
        return value

    @field_validator("clusters")
    @classmethod
    def _are_named(cls, value: dict[str, ClusterSettings]) -> dict[str, ClusterSettings]:
        if not value:
            raise ValueError(
                "no cluster is named; write clusters: {shop: {management: {url: http://user:password@host:15672}}}"
            )
        for name in value:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name for a cluster; use letters, digits, dot, dash and underscore")
        return value

    @property
    def thresholds(self) -> Thresholds:
        """What diagnosis judges by: it knows the probes' queues by the prefix that the probes really use."""
        own = f"{self.probes.prefix}."
        if own in self.diagnosis.own_prefixes:
            return self.diagnosis
        return self.diagnosis.model_copy(update={"own_prefixes": (*self.diagnosis.own_prefixes, own)})


def parse_listen(text: str) -> tuple[str, int]:
    """Read `host:port` or `[address]:port`; port 0 takes a free one.

    Raises:
        ValueError: saying what is expected.
    """
    found = _LISTEN.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f"{text!r} is not host:port; write 127.0.0.1:9419, or 0.0.0.0:9419 for all addresses")
    return (found["six"] or found["host"], int(found["port"]))
