"""What a broker is and what a user may do there, as `ackscope init` needs it. Reads only."""

import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ackscope.address import host_and_port
from ackscope.errors import BadAnswer, Refused
from exporter.broker.client import ManagementClient

_SECONDS = 2.0
"""How long an AMQP port may take to answer."""

_SCHEMES = {"amqp": "amqp", "amqp/ssl": "amqps"}
"""Protocol of a listener -> scheme of its address."""


@dataclass(frozen=True, slots=True)
class SurveyedNode:
    """One node of the cluster.

    Attributes:
        amqp: an address of it that answers from here, without credentials; None if there is none.
    """

    name: str
    running: bool
    amqp: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerSurvey:
    """A broker, as the user of the management address sees it.

    Attributes:
        amqp: an address that answers from here, without credentials; None if there is none.
        user: the user of the management address.
        tags: its tags.
        vhosts: all virtual hosts.
        users: name -> tags of all users; empty unless `user` is an administrator.
        permitted: user -> virtual hosts where it has a permission; empty as above.
        stream_ports: ports of the stream protocol on the node that answered, by whether they are for TLS.
    """

    version: str
    cluster: str
    nodes: tuple[SurveyedNode, ...]
    amqp: str | None
    user: str
    tags: frozenset[str]
    vhosts: tuple[str, ...]
    users: Mapping[str, frozenset[str]]
    permitted: Mapping[str, frozenset[str]]
    stream_ports: Mapping[bool, int] = field(default_factory=dict)

    @property
    def administrator(self) -> bool:
        """Whether the user may create users and virtual hosts."""
        return "administrator" in self.tags


def survey(client: ManagementClient, answers: Callable[[str, str, int], bool]) -> BrokerSurvey:
    """Look at a broker.

    Args:
        client: its management API.
        answers: whether a broker answers, by scheme, host and port, such as `amqp`, `shop-rabbit`, 5672.

    Raises:
        Refused: the credentials are wrong, or the user lacks the tag `monitoring`.
        BrokerError: the broker cannot be read.
    """
    whoami = client.get("/api/whoami")
    user, tags = str(whoami["name"]), tags_of(whoami)
    if not tags & {"monitoring", "administrator"}:
        raise Refused(
            f"{client.address.where}: user {user!r} has neither the tag `monitoring` nor `administrator`; give init an "
            f"administrator, or: rabbitmqctl set_user_tags {user} monitoring"
        )
    overview = client.get("/api/overview")
    if "rabbitmq_version" not in overview or "node" not in overview:
        raise BadAnswer(f"{client.address.where}: this is no RabbitMQ with statistics; enable rabbitmq_management")
    hosts = _Addresses(client.address.host, overview, answers, tls_first=client.address.tls)
    nodes = tuple(
        SurveyedNode(node["name"], running := bool(node.get("running")), hosts.of(node["name"]) if running else None)
        for node in client.get("/api/nodes")
    )
    administrator = "administrator" in tags
    permissions = client.get("/api/permissions") if administrator else []
    permitted: dict[str, frozenset[str]] = {}
    for entry in permissions:
        permitted[entry["user"]] = permitted.get(entry["user"], frozenset()) | {entry["vhost"]}
    users = client.get("/api/users") if administrator else []
    return BrokerSurvey(
        version=str(overview["rabbitmq_version"]),
        cluster=str(overview.get("cluster_name", "")),
        nodes=nodes,
        amqp=hosts.any(),
        user=user,
        tags=tags,
        vhosts=tuple(sorted(vhost["name"] for vhost in client.get("/api/vhosts"))),
        users={entry["name"]: tags_of(entry) for entry in users},
        permitted=permitted,
        stream_ports={
            each["protocol"] == "stream/ssl": int(each["port"])
            for each in overview.get("listeners", ())
            if each.get("protocol") in {"stream", "stream/ssl"} and each["node"] == overview["node"]
        },
    )


def tags_of(user: Mapping[str, Any]) -> frozenset[str]:
    """The tags of a user: a list, or text with commas before 3.9."""
    tags = user.get("tags") or ()
    words = tags.split(",") if isinstance(tags, str) else tags
    return frozenset(word.strip() for word in words if word.strip())


class _Addresses:
    """Finds AMQP addresses that answer from here. A node may listen on addresses that only its own network has."""

    def __init__(
        self, host: str, overview: Mapping[str, Any], answers: Callable[[str, str, int], bool], *, tls_first: bool
    ) -> None:
        self._host, self._answering, self._answers = host, overview["node"], answers
        listeners = [each for each in overview.get("listeners", ()) if each.get("protocol") in _SCHEMES]
        # With TLS on the management side, AMQP with TLS comes first.
        self._listeners = sorted(listeners, key=lambda each: (each["protocol"] == "amqp/ssl") != tls_first)

    def of(self, node: str) -> str | None:
        """The address of one node."""
        own = node.partition("@")[2]
        hosts = [self._host, own] if node == self._answering else [own]
        return self._first((each, hosts) for each in self._listeners if each["node"] == node)

    def any(self) -> str | None:
        """The address of the cluster: the host of the management address, if AMQP answers there."""
        known = [each for each in self._listeners if each["node"] == self._answering]
        return self._first((each, [self._host]) for each in known or self._listeners) or self.of(self._answering)

    def _first(self, candidates: Any) -> str | None:
        for listener, hosts in candidates:
            bound = str(listener.get("ip_address", ""))
            specific = [bound] if bound not in {"", "::", "0.0.0.0"} else []  # noqa: S104  that is compared, not bound
            scheme, port = _SCHEMES[listener["protocol"]], int(listener["port"])
            for host in dict.fromkeys([*hosts, *specific]):
                if self._answers(scheme, host, port):
                    return f"{scheme}://{host_and_port(host, port)}"
        return None


def speaks_amqp(scheme: str, host: str, port: int, ca_file: Path | None = None) -> bool:
    """Whether an AMQP 0-9-1 broker answers: it sends a method frame on channel 0 after the protocol header."""
    try:
        with socket.create_connection((host, port), timeout=_SECONDS) as plain:
            if scheme == "amqp":
                return _is_greeted(plain)
            with ssl.create_default_context(cafile=ca_file).wrap_socket(plain, server_hostname=host) as stream:
                return _is_greeted(stream)
    except (OSError, UnicodeError):
        return False


def _is_greeted(stream: socket.socket) -> bool:
    stream.sendall(b"AMQP\x00\x00\x09\x01")
    return stream.recv(3) == b"\x01\x00\x00"


def path(*words: str) -> str:
    """A path of the management API, such as `/api/users/ann`."""
    return "/".join(["/api", *(quote(word, safe="") for word in words)])
