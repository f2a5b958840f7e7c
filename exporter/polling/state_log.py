"""Logs changes of the state of a cluster from one round to the next, and nothing else."""

from collections.abc import Collection, Mapping

from ackscope.log import get_logger
from ackscope.snapshot import Snapshot
from exporter.broker.families import FAST, METRICS, POLLED
from exporter.broker.queue_reader import TOTALS_UNSUPPORTED, QueueMode, QueueReader
from exporter.broker.visibility import (
    NEEDS_MONITORING_TAG,
    NO_STATISTICS,
    invisible_objects,
    sees_own_objects_only,
)

log = get_logger(__name__)

_CONFIRM_ROUNDS = 3
"""Rounds for which objects must be invisible before it is logged, because lists and totals are read separately."""

_SET_TAG = "rabbitmqctl set_user_tags USER monitoring"
_INVISIBLE = {
    "queues": (
        "the user has no permission on their virtual hosts",
        "rabbitmqctl set_permissions -p VHOST USER '' '' ''",
    ),
    "channels": ("the user lacks the tag `monitoring`", _SET_TAG),
    "connections": ("the user lacks the tag `monitoring`", _SET_TAG),
}
"""Kind of objects -> reason why the user cannot see them, and the command that helps."""


class StateChangeLogger:
    """Logs state changes of one cluster. Not thread-safe; called after each round."""

    def __init__(self, cluster: str) -> None:
        self._log = log.bind(cluster=cluster)
        self._failing: dict[str, str] = {}
        self._unreachable = False
        self._grace_rounds = 0
        self._version: str | None = None
        self._statistics: bool | None = None
        self._own_objects_only = False
        self._invisible: dict[str, int] = {}
        self._queue_mode: QueueMode | None = None
        self._details_failing = False
        self._totals_unsupported = False

    def log_changes(self, snapshot: Snapshot, unavailable: Collection[str], queues: QueueReader) -> None:
        """Log what changed since the previous call.

        Args:
            snapshot: snapshot of this round.
            unavailable: families that the broker does not provide because it collects no statistics.
            queues: how the queues are read.
        """
        parts = snapshot.parts
        own_objects_only = sees_own_objects_only(parts)
        # One log line explains the failures of all these families.
        explained = {*unavailable, *(NEEDS_MONITORING_TAG if own_objects_only else ())}
        metrics = snapshot.prometheus
        alone = metrics.value is not None and metrics.value.alone
        failing = {name: part.error for name, part in parts.items() if part.error and not alone}
        self._log_failures(failing | ({METRICS: metrics.error} if metrics.error else {}), explained)
        if own_objects_only and not self._own_objects_only:
            self._log.warning(
                "user lacks the tag monitoring",
                effect="no nodes, connections, channels, consumers and totals; queues only of virtual hosts where the "
                "user has a permission",
                action=_SET_TAG,
            )
        self._own_objects_only = own_objects_only
        self._log_broker(snapshot)
        self._log_invisible(invisible_objects(snapshot))
        self._log_queues(len(snapshot.queues.value or ()), queues)

    def _log_failures(self, failing: dict[str, str], explained: Collection[str]) -> None:
        was_unreachable, self._unreachable = self._unreachable, all(name in failing for name in FAST)
        if self._unreachable:
            if not was_unreachable:
                self._log.warning("cluster unreachable", error=failing["overview"])
            return
        if was_unreachable:
            self._log.info("cluster reachable again")
            # Families that failed while the broker was unreachable are about to be read again.
            self._grace_rounds, self._failing = _CONFIRM_ROUNDS, {}
        if self._grace_rounds > 0:
            self._grace_rounds -= 1
            return
        previous, self._failing = self._failing, failing
        for family in [name for name in POLLED if name in failing and name not in previous]:
            if family not in explained and failing[family] != NO_STATISTICS:
                self._log.warning("endpoint cannot be read", endpoint=family, error=failing[family])
        for family in [name for name in POLLED if name in previous and name not in failing]:
            self._log.info("endpoint can be read again", endpoint=family)

    def _log_broker(self, snapshot: Snapshot) -> None:
        overview = snapshot.overview.value
        if overview is None:
            return
        if overview.rabbitmq_version is not None and overview.rabbitmq_version != self._version:
            self._log.info("broker version", version=overview.rabbitmq_version)
            self._version = overview.rabbitmq_version
        if overview.statistics is False and self._statistics is not False:
            self._log.warning(
                "broker collects no statistics",
                effect="only queue totals, health checks and configuration; no rates, node metrics, channels and "
                "consumers, which are retried every 5 min",
                action="set management.disable_stats and management_agent.disable_metrics_collector to false",
            )
        elif overview.statistics and self._statistics is False:
            self._log.info("broker collects statistics again")
        self._statistics = overview.statistics

    def _log_invisible(self, invisible: Mapping[str, int]) -> None:
        self._invisible = {kind: self._invisible.get(kind, 0) + 1 for kind in invisible}
        for kind, rounds in self._invisible.items():
            if rounds == _CONFIRM_ROUNDS:
                reason, action = _INVISIBLE[kind]
                self._log.warning(
                    "user sees no objects of this kind", kind=kind, count=invisible[kind], reason=reason, action=action
                )

    def _log_queues(self, count: int, queues: QueueReader) -> None:
        if count:
            self._log_mode(count, queues)
        if queues.totals_unsupported and not self._totals_unsupported:
            self._log.warning("queue totals not supported", effect=TOTALS_UNSUPPORTED)
        self._totals_unsupported = queues.totals_unsupported
        error = queues.details.error if queues.mode is QueueMode.TOTALS else None
        if error is not None and not self._details_failing:
            self._log.warning("queue statistics cannot be read", error=error)
        self._details_failing = error is not None

    def _log_mode(self, count: int, queues: QueueReader) -> None:
        previous, self._queue_mode = self._queue_mode, queues.mode
        if queues.mode is QueueMode.TOTALS and previous is not QueueMode.TOTALS and self._statistics is not False:
            self._log.info(
                "full queue polls exceed the budget",
                count=count,
                effect="totals of all queues, statistics in rotation, suspicious queues first",
                setting="poll.budget",
            )
        if queues.mode is QueueMode.FULL and previous is QueueMode.TOTALS and not queues.totals_unsupported:
            self._log.info("full queue polls fit the budget again", count=count)
