"""Settings of discovery."""

import re
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from ackscope.errors import AckscopeError
from ackscope.settings import Seconds, Settings
from exporter.broker.credentials import credentials_from
from exporter.broker.session import open_session
from exporter.broker.settings import ManagementSettings

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REQUEST_SECONDS = 10.0
_SERVER = re.compile(r"https?://[^/@?#\s]+:[0-9]{1,5}/?")


class KubernetesSettings(Settings):
    """`RabbitmqCluster` objects of the cluster operator, each watched as its default user.

    Attributes:
        enabled: whether such objects are looked for.
        namespaces: where to look; an empty list means all namespaces, which needs a ClusterRole.
        label_selector: limits it to objects with these labels, as in `kubectl --selector`.
        probes: whether discovered clusters are probed. Probes create queues on them.
        probe_vhost: virtual host of these probes; the default user has permissions on `/`.
        full_names: names each cluster NAMESPACE.NAME; false: NAME, if no other namespace has one of that name.
        refresh: seconds after which secrets are read again, so that a new password is used.
        domain: end of the host names, after the namespace. The certificates of the brokers must be for these names.
        ca_file: CA certificates for clusters that only accept TLS; by default those of the system.
        verify: false accepts any certificate of a broker.
        server: address of the Kubernetes API, with its port.
        server_ca_file: CA certificates of the Kubernetes API.
        token_file: token of the service account; read again when it changes.
    """

    enabled: bool = False
    namespaces: tuple[str, ...] = ()
    label_selector: str = ""
    probes: bool = False
    probe_vhost: str = "/"
    full_names: bool = False
    refresh: Seconds = Field(default=30.0, ge=1.0, le=3600.0)
    domain: str = "svc"
    ca_file: Path | None = None
    verify: bool = True
    server: str = "https://kubernetes.default.svc:443"
    server_ca_file: Path | None = _ACCOUNT / "ca.crt"
    token_file: Path = _ACCOUNT / "token"

    @field_validator("namespaces")
    @classmethod
    def _are_namespaces(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not is_label(name):
                raise ValueError(f"invalid namespace {name!r}; use lower-case letters, digits and dashes")
        if len(value) > _MAX_NAMESPACES:
            raise ValueError(f"more than {_MAX_NAMESPACES} namespaces; use an empty list, which means all")
        return tuple(dict.fromkeys(value))

    @field_validator("domain")
    @classmethod
    def _is_a_domain(cls, value: str) -> str:
        if not all(map(is_label, value.split("."))):
            raise ValueError(f"invalid end of a host name {value!r}; use svc, or svc.cluster.local")
        return value

    @field_validator("server")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if not _SERVER.fullmatch(value):
            # It is not quoted, as it may hold a password.
            raise ValueError("invalid address; use https://HOST:PORT without user and path")
        return value

    @model_validator(mode="after")
    def _can_start(self) -> Self:
        if not self.enabled:
            return self
        try:
            credentials_from(self.access(), "kubernetes")
            open_session(self.access(), "kubernetes").close()
        except AckscopeError as error:
            text = str(error).removeprefix("kubernetes.")
            # Its key here is another one than that of the settings that are checked.
            raise ValueError(f"server_{text}" if text.startswith("ca_file") else text) from None
        return self

    def access(self) -> ManagementSettings:
        """How to reach the Kubernetes API."""
        return ManagementSettings(
            url=self.server, token_file=self.token_file, ca_file=self.server_ca_file, timeout=_REQUEST_SECONDS
        )


_MAX_NAMESPACES = 50
"""Each one is a connection to the Kubernetes API."""


def is_label(text: object) -> bool:
    """Whether a name can be a label of a host name (RFC 1123), as namespaces and services must be."""
    return (
        isinstance(text, str)
        and 0 < len(text) < 64
        and text.isascii()
        and text == text.lower()
        and text.replace("-", "").isalnum()
        and text[0] != "-" != text[-1]
    )


class DiscoverySettings(Settings):
    """Clusters that are found, in addition to those of `clusters`.

    Attributes:
        kubernetes: objects of the RabbitMQ cluster operator.
    """

    kubernetes: KubernetesSettings = KubernetesSettings()
