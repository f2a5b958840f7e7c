"""Discovers clusters: joins the watched objects with their secrets, and reports what changed."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ackscope.clock import Clock
from ackscope.errors import AckscopeError
from ackscope.log import get_logger
from exporter.discovery.api import KubernetesApi, KubernetesError
from exporter.discovery.object_watch import ObjectWatch
from exporter.discovery.objects import (
    DiscoveredCluster,
    Login,
    NotWatched,
    SecretPlace,
    discover,
)
from exporter.discovery.settings import KubernetesSettings

if TYPE_CHECKING:
    from exporter.settings import ClusterSettings

log = get_logger(__name__)

_PASSING = {NotWatched.DELETING, NotWatched.STARTING, NotWatched.STOPPED}
"""Reasons that nobody has to do something about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryStatus:
    """State of discovery.

    Attributes:
        enabled: whether it runs.
        complete: whether all namespaces have been listed. Until then, a cluster that is missing may still come.
        error: why the last request for objects failed; None if it succeeded.
        age: seconds since the Kubernetes API last answered, of the namespace where that is longest ago; None before.
        failures: failed requests, those for secrets included.
        objects: each object, and what became of it.
    """

    enabled: bool = False
    complete: bool = True
    error: str | None = None
    age: float | None = None
    failures: int = 0
    objects: tuple[DiscoveredCluster, ...] = ()


class LoginStore:
    """Content of the secrets of default users. Not thread-safe.

    Args:
        settings: how to reach the Kubernetes API, and how often to read again.
    """

    def __init__(self, settings: KubernetesSettings) -> None:
        self._settings = settings
        self._read_at: dict[SecretPlace, float] = {}
        self.logins: dict[SecretPlace, Login] = {}
        self.failures = 0

    def read(self, places: Collection[SecretPlace]) -> None:
        """Read the secrets that are new or due, and forget all others. What cannot be read keeps its last content."""
        self.logins = {place: it for place, it in self.logins.items() if place in places}
        self._read_at = {place: at for place, at in self._read_at.items() if place in places}
        now = time.monotonic()
        due = [it for it in places if it not in self._read_at or now - self._read_at[it] >= self._settings.refresh]
        if not due:
            return
        try:
            # A connection of its own each time: it would be idle for longer than servers keep one.
            api = KubernetesApi(self._settings)
        except AckscopeError as error:
            self._failed(error)
            return
        try:
            for place in due:
                try:
                    self.logins[place] = api.login(place)
                except KubernetesError as error:
                    self._failed(error)
                    if error.status is None:
                        # Not reached: the others would only wait for as long.
                        break
                self._read_at[place] = now
        finally:
            api.close()

    def _failed(self, error: AckscopeError) -> None:
        self.failures += 1
        log.warning("secret not read", error=str(error))


class KubernetesDiscovery:
    """Discovers the clusters of a Kubernetes cluster. A thread of its own, and one for each namespace.

    Args:
        settings: which objects; nothing is started unless `enabled`.
        configured: returns the names of the clusters in the configuration file.
        changed: called from the thread after `clusters` or `complete` have changed; returns whether that was applied.
            If not, it is called again later.
        clock: tells the age of objects.
        before: an earlier discovery whose clusters stay until this one has a complete list.

    Attributes:
        clusters: name -> settings of the clusters that are watched. Replaced as a whole.
        complete: whether all namespaces have been listed.
    """

    def __init__(
        self,
        settings: KubernetesSettings,
        configured: Callable[[], Collection[str]],
        changed: Callable[[], bool],
        clock: Clock,
        before: "KubernetesDiscovery | None" = None,
    ) -> None:
        self.settings = settings
        self._configured, self._on_change, self._clock = configured, changed, clock
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._store = LoginStore(settings)
        self._found: tuple[DiscoveredCluster, ...] = ()
        self._applied = True
        self.complete = not settings.enabled
        self.clusters: Mapping[str, ClusterSettings] = {}
        self._watches: list[ObjectWatch] = []
        if settings.enabled:
            self._watches = [ObjectWatch(settings, it, self._wake.set) for it in settings.namespaces or ("",)]
            if before is not None:
                self._found, self.clusters = before.status().objects, before.clusters
        self._thread = threading.Thread(target=self._run, name="discovery", daemon=True)

    def start(self) -> None:
        """Start all threads."""
        if self.settings.enabled:
            for watch in self._watches:
                watch.start()
            self._thread.start()

    def stop(self) -> None:
        """Let all threads end, without waiting for them; nothing more is reported."""
        self._stopped.set()
        for watch in self._watches:
            watch.stop()
        self._wake.set()

    def look_again(self) -> None:
        """Judge the objects again, as the names of configured clusters may have changed."""
        self._wake.set()

    def status(self) -> DiscoveryStatus:
        """The present state."""
        if not self.settings.enabled:
            return DiscoveryStatus()
        ages = [it.succeeded for it in self._watches]
        last = [it for it in ages if it is not None]
        return DiscoveryStatus(
            enabled=True,
            complete=self.complete,
            error=next((it.error for it in self._watches if it.error is not None), None),
            age=time.monotonic() - min(last) if len(last) == len(ages) else None,
            failures=self._store.failures + sum(it.failures for it in self._watches),
            objects=self._found,
        )

    def _run(self) -> None:
        while True:
            self._wake.wait(self.settings.refresh)
            self._wake.clear()
            if self._stopped.is_set():
                return
            try:
                self._update()
            except Exception:
                # Boundary: a defect must not end discovery.
                log.exception("discovery failed because of a bug in ackscope")

    def _update(self) -> None:
        if not all(it.tried for it in self._watches):
            # With a part of the namespaces, names that are not unique would look unique.
            return
        if not any(it.listed for it in self._watches):
            # Clusters of an earlier discovery stay.
            return
        objects = [it for watch in self._watches for it in watch.objects.values()]
        now = self._clock.now().wall
        watched = {it.key for it in self._found if it.settings is not None}
        usable = [it for it in objects if it.unusable(now, watched=it.key in watched) is None]
        self._store.read({it.secret for it in usable if it.secret is not None})
        found = discover(objects, self._store.logins, self._configured(), self.settings, now, self._found)
        _log_changes(self._found, found)
        complete = all(it.listed for it in self._watches)
        clusters = {it.cluster: it.settings for it in found if it.settings is not None}
        differs = (clusters, complete) != (self.clusters, self.complete)
        self._found, self.clusters, self.complete = found, clusters, complete
        if (differs or not self._applied) and not self._stopped.is_set():
            self._applied = self._on_change()


def _log_changes(before: Collection[DiscoveredCluster], after: Collection[DiscoveredCluster]) -> None:
    """Log each object whose state changed, once."""
    known = {it.key: (it.cluster, it.reason) for it in before}
    for it in after:
        if known.pop(it.key, None) == (it.cluster, it.reason):
            continue
        facts = {"namespace": it.namespace, "object": it.name, "cluster": it.cluster}
        if it.reason is None:
            log.info("cluster discovered", **facts)
        elif it.reason in _PASSING:
            log.info("object not watched", reason=it.reason.value, **facts)
        else:
            log.warning("object not watched", reason=it.reason.value, **facts)
    for namespace, name in known:
        log.info("object gone", namespace=namespace, object=name)
