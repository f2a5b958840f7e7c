"""Maps `RabbitmqCluster` objects (rabbitmq.com/v1beta1) to clusters. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic import SecretStr, ValidationError

from exporter.discovery.settings import KubernetesSettings, is_label
from exporter.settings import CLUSTER_NAME, ClusterSettings

STARTING_SECONDS = 600.0
"""An object without a ready replica that is older than this is watched: it does not start any more, it is down."""
_MAX_REPLICAS = 100

ObjectKey = tuple[str, str]
"""Namespace and name."""


class NotWatched(StrEnum):
    """Why an object is not watched."""

    CONFIGURED = "configured"
    DELETING = "deleting"
    INVALID = "invalid"
    NO_USER = "no-secret"
    OTHER_NAMESPACE = "secret-in-other-namespace"
    STARTING = "starting"
    STOPPED = "stopped"
    UNREADABLE = "secret-unreadable"


class SecretPlace(NamedTuple):
    """A secret, and the keys of the user name and of the password in it."""

    namespace: str
    name: str
    username: str = "username"
    password: str = "password"  # noqa: S105  a key, no password


class Login(NamedTuple):
    """User name and password."""

    username: str
    password: SecretStr


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitmqObject:
    """What matters of one `RabbitmqCluster`.

    Attributes:
        created: wall-clock time in seconds; None if unknown.
        available: whether a replica is ready (condition `ClusterAvailable`).
        tls_only: whether only the TLS ports are open (`spec.tls.disableNonTLSListeners`).
        secret: secret of the default user; None if the operator names none, as with Vault.
    """

    namespace: str
    name: str
    created: float | None = None
    deleting: bool = False
    available: bool = True
    replicas: int = 1
    tls_only: bool = False
    secret: SecretPlace | None = None

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return (self.namespace, self.name)

    def unusable(self, now: float, *, watched: bool = False) -> NotWatched | None:
        """Why it is not watched, as far as the object shows; None if it can be.

        Args:
            now: wall-clock time in seconds.
            watched: whether it is watched by now. A broker that goes down stays watched.
        """
        new = self.created is not None and now - self.created < STARTING_SECONDS
        starting = not self.available and new and not watched
        if not is_label(self.name) or not is_label(self.namespace):
            return NotWatched.INVALID
        if self.deleting:
            return NotWatched.DELETING
        if self.replicas == 0:
            return NotWatched.STOPPED
        if self.secret is None:
            return NotWatched.STARTING if starting else NotWatched.NO_USER
        if self.secret.namespace != self.namespace:
            # Who may write the object could have any secret sent to a service of theirs.
            return NotWatched.OTHER_NAMESPACE
        return NotWatched.STARTING if starting else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredCluster:
    """One object, and what became of it.

    Attributes:
        cluster: name of the cluster in ackscope.
        reason: why it is not watched; None if it is.
        settings: how it is watched; None if it is not.
        source: what the settings were made from.
    """

    namespace: str
    name: str
    cluster: str
    reason: NotWatched | None = None
    settings: ClusterSettings | None = field(default=None, repr=False)
    source: "tuple[RabbitmqObject, Login, KubernetesSettings] | None" = field(default=None, repr=False)

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return (self.namespace, self.name)


def parse_object(document: Mapping[str, Any]) -> RabbitmqObject | None:
    """Read a `RabbitmqCluster`; None if it has no name and namespace.

    Source of the fields: `api/v1beta1` and `internal/status` of github.com/rabbitmq/cluster-operator.
    """
    metadata, spec, status = (_mapping(document.get(key)) for key in ("metadata", "spec", "status"))
    namespace, name = metadata.get("namespace"), metadata.get("name")
    if not isinstance(namespace, str) or not isinstance(name, str):
        return None
    tls, replicas = _mapping(spec.get("tls")), spec.get("replicas")
    conditions = status.get("conditions")
    return RabbitmqObject(
        namespace=namespace,
        name=name,
        created=_wall(metadata.get("creationTimestamp")),
        deleting="deletionTimestamp" in metadata,
        available=any(
            _mapping(it).get("type") == "ClusterAvailable" and it.get("status") == "True"
            for it in (conditions if isinstance(conditions, list) else ())
        ),
        replicas=min(replicas, _MAX_REPLICAS) if isinstance(replicas, int) and replicas >= 0 else 1,
        tls_only=bool(tls.get("secretName")) and tls.get("disableNonTLSListeners") is True,
        secret=_secret(status, namespace),
    )


def _secret(status: Mapping[str, Any], namespace: str) -> SecretPlace | None:
    """The secret of the default user.

    `status.binding` precedes `status.defaultUser`: with `spec.secretBackend.externalSecret` only the former names the
    secret that exists. With Vault there is neither.
    """
    reference = _mapping(_mapping(status.get("defaultUser")).get("secretReference"))
    keys, bound = _mapping(reference.get("keys")), _mapping(status.get("binding")).get("name")
    name = bound or reference.get("name")
    if not name:
        return None
    place = namespace if bound else reference.get("namespace", namespace)
    return SecretPlace(
        str(place), str(name), str(keys.get("username", "username")), str(keys.get("password", "password"))
    )


def name_clusters(objects: Iterable[RabbitmqObject], *, full: bool) -> dict[ObjectKey, str]:
    """Names of clusters: NAME where it is unique, else NAMESPACE.NAME. Neither part has a dot."""
    listed = list(objects)
    count = Counter(it.name for it in listed)
    return {it.key: f"{it.namespace}.{it.name}" if full or count[it.name] > 1 else it.name for it in listed}


def discover(
    objects: Collection[RabbitmqObject],
    logins: Mapping[SecretPlace, Login],
    configured: Collection[str],
    settings: KubernetesSettings,
    now: float,
    before: Collection[DiscoveredCluster] = (),
) -> tuple[DiscoveredCluster, ...]:
    """What becomes of each object, in the order of their names.

    Args:
        objects: all of them.
        logins: content of the secrets that could be read.
        configured: names of clusters in the configuration file, which take precedence.
        settings: how they are watched.
        now: wall-clock time in seconds.
        before: the result of the time before. Settings are made again only if something changed: reading certificates
            takes tens of milliseconds.
    """
    names = name_clusters(objects, full=settings.full_names)
    earlier, found = {it.key: it for it in before}, []
    for item in sorted(objects, key=lambda it: it.key):
        name, was, made, source = names[item.key], earlier.get(item.key), None, None
        reason = item.unusable(now, watched=was is not None and was.settings is not None)
        login = logins.get(item.secret) if item.secret is not None else None
        if reason is None and name in configured:
            reason = NotWatched.CONFIGURED
        if reason is None and login is None:
            reason = NotWatched.UNREADABLE
        if reason is None and login is not None:
            source = (item, login, settings)
            if was is not None and was.source == source and was.cluster == name:
                found.append(was)
                continue
            made = cluster_settings(item, login, settings) if CLUSTER_NAME.fullmatch(name) else None
            reason = NotWatched.INVALID if made is None else None
        found.append(
            DiscoveredCluster(
                namespace=item.namespace,
                name=item.name,
                cluster=name,
                reason=reason,
                settings=made,
                source=None if made is None else source,
            )
        )
    return tuple(found)


def cluster_settings(item: RabbitmqObject, login: Login, settings: KubernetesSettings) -> ClusterSettings | None:
    """How an object is watched; None if that is not valid.

    The service has the name of the object, the headless one of its pods ends in `-nodes`, and the pods are those of the
    StatefulSet `NAME-server` (`internal/resource` of the operator).
    """
    secure = item.tls_only
    end = f"{item.namespace}.{settings.domain}"
    http, amqp = ("https", "amqps") if secure else ("http", "amqp")
    management_port, amqp_port, prometheus_port = (15671, 5671, 15691) if secure else (15672, 5672, 15692)
    trust = {"ca_file": settings.ca_file if secure and settings.verify else None, "verify": settings.verify}
    access = {"username": login.username, "password": login.password, **trust}
    nodes = [f"{item.name}-server-{number}.{item.name}-nodes.{end}" for number in range(item.replicas)]
    document: dict[str, Any] = {
        "management": {"url": f"{http}://{item.name}.{end}:{management_port}", **access},
        "prometheus": {"urls": [f"{http}://{node}:{prometheus_port}" for node in nodes], **trust},
    }
    if settings.probes:
        vhost = quote(settings.probe_vhost, safe="")
        document["amqp"] = {"url": f"{amqp}://{item.name}.{end}:{amqp_port}/{vhost}", **access}
    try:
        return ClusterSettings.model_validate(document)
    except ValidationError:
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _wall(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None
