"""Delivery: a worker for each receiver, fed by every diagnosis, changed by reloads."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackscope.clock import Clock
from ackscope.findings import DiagnosisResult, FindingKey
from ackscope.triage import Triage
from exporter.delivery.incidents import IncidentRecord
from exporter.delivery.messages import ClusterOf
from exporter.delivery.receivers.alertmanager import AlertmanagerReceiver, Silences
from exporter.delivery.receivers.apprise import AppriseReceiver
from exporter.delivery.receivers.contract import Receiver
from exporter.delivery.receivers.webhook import WebhookReceiver
from exporter.delivery.record_file import RecordContent, read_record
from exporter.delivery.settings import FindingDeliverySettings, ReceiverSettings
from exporter.delivery.worker import DeliveryStats, DeliveryWorker
from exporter.triage.store import TriageStore

_STOP_SECONDS = 3.0
"""All receivers together get this time to finish a message."""


class FindingDelivery:
    """Delivers the findings of all clusters.

    Args:
        settings: receivers and routes.
        clusters: all clusters; findings of others have ended. None: not known yet, as more may be discovered.
        triage: who muted what. Silences of Alertmanagers are added to it.
        cluster_of: what templates name of a cluster.
        clock: gives the times.
    """

    def __init__(
        self,
        settings: FindingDeliverySettings,
        clusters: Collection[str] | None,
        triage: TriageStore,
        cluster_of: ClusterOf,
        clock: Clock,
    ) -> None:
        self._settings, self._triage = settings, triage
        self._cluster_of, self._clock = cluster_of, clock
        self._workers = {name: self._worker(name, it) for name, it in settings.receivers.items()}
        self._keep(clusters)

    def start(self) -> None:
        """Start all workers."""
        for worker in self._workers.values():
            worker.start()

    def stop(self) -> None:
        """Stop all workers and store what was delivered."""
        for worker in self._workers.values():
            worker.end()
        until = self._clock.now().mono + _STOP_SECONDS
        for worker in self._workers.values():
            worker.stop(max(0.0, until - self._clock.now().mono))

    def observe(self, result: DiagnosisResult) -> None:
        """Deliver what changed with this diagnosis."""
        for name, worker in list(self._workers.items()):
            receiver = self._settings.receivers.get(name)
            if receiver is None:
                continue
            # Its own silences must not end an alert: without the alert, Alertmanager would not report the silence.
            own = receiver.alertmanager is not None
            worker.observe(result, self._triage.of(result.cluster, without=name if own else None))

    def stats(self) -> dict[str, DeliveryStats]:
        """Receiver -> figures."""
        return {name: worker.stats() for name, worker in list(self._workers.items())}

    def apply(self, settings: FindingDeliverySettings, clusters: Collection[str] | None) -> None:
        """Use other settings. A receiver whose destination is the same knows what it was sent before."""
        before, self._settings = self._settings, settings
        workers = {}
        for name, worker in self._workers.items():
            same = (
                settings.receivers.get(name) == before.receivers[name]
                and settings.routes_to(name) == before.routes_to(name)
                and (settings.directory, settings.external_url, settings.settle)
                == (before.directory, before.external_url, before.settle)
            )
            if same:
                workers[name] = worker
                continue
            worker.stop()
            if name not in settings.receivers or settings.receivers[name].kind != "alertmanager":
                self._triage.silence(name, {})
        for name, receiver in settings.receivers.items():
            if name not in workers:
                workers[name] = self._worker(name, receiver, self._workers.get(name))
        new = [worker for name, worker in workers.items() if worker is not self._workers.get(name)]
        self._workers = {name: workers[name] for name in settings.receivers}
        self._keep(clusters)
        for worker in new:
            worker.start()

    def _keep(self, clusters: Collection[str] | None) -> None:
        if clusters is not None:
            for worker in self._workers.values():
                worker.keep_clusters(tuple(clusters))

    def _worker(self, name: str, settings: ReceiverSettings, before: DeliveryWorker | None = None) -> DeliveryWorker:
        """A worker, with the record of an earlier one if the destination is the same."""
        path, address = self._path(name), f"{settings.kind} {settings.destination.address}"
        content = read_record(path, address) if path is not None else RecordContent()
        routes, settle = self._settings.routes_to(name), self._settings.settle
        if before is not None and before.address == address:
            record = before.record
            record.apply(settings, routes, settle)
        else:
            record = IncidentRecord(settings, routes, settle, content.restored(), self._clock.now())
        return DeliveryWorker(
            name,
            make_receiver(
                settings,
                self._settings.external_url,
                self._clock,
                lambda silences: self._triage.silence(name, _by_cluster(silences)),
                content.extra,
            ),
            record,
            path=path,
            address=address,
            cluster_of=self._cluster_of,
            external_url=self._settings.external_url,
            clock=self._clock,
        )

    def _path(self, name: str) -> Path | None:
        return None if self._settings.directory is None else self._settings.directory / f"{name}.json"


def make_receiver(
    settings: ReceiverSettings,
    external_url: str | None,
    clock: Clock,
    on_silences: Callable[[Silences], None] = lambda _: None,
    memory: Mapping[str, Any] = MappingProxyType({}),
) -> Receiver:
    """The receiver that these settings describe."""
    if settings.alertmanager is not None:
        return AlertmanagerReceiver(settings.alertmanager, external_url, on_silences, memory)
    if settings.webhook is not None:
        return WebhookReceiver(settings.webhook, lambda: clock.now().wall)
    if settings.apprise is not None:
        return AppriseReceiver(settings.apprise)
    raise AssertionError("a receiver has a destination")


def _by_cluster(silences: Silences) -> dict[str, dict[FindingKey, Triage]]:
    found: dict[str, dict[FindingKey, Triage]] = {}
    for key, triage in silences.items():
        found.setdefault(key.cluster, {})[key.finding] = triage
    return found
