"""Logs what changed about a cluster from one round to the next, and nothing that did not."""

import logging
from collections.abc import Collection, Mapping

from ackscope.snapshot import FAMILIES, Snapshot
from exporter.broker.blind import NO_STATISTICS, UNSHOWN, is_own_only, unseen
from exporter.broker.families import FAST
from exporter.broker.queue_reading import LACKING, Mode, QueueReader

log = logging.getLogger(__name__)

_PATIENCE = 3
"""Rounds for which something must be hidden before it is told: lists are read a moment apart from what counts them."""

_REASONS = {
    "queues": "its user has no permission on their virtual hosts (rabbitmqctl set_permissions -p VHOST USER '' '' '')",
    "channels": "its user lacks the tag `monitoring` (rabbitmqctl set_user_tags USER monitoring)",
    "connections": "its user lacks the tag `monitoring` (rabbitmqctl set_user_tags USER monitoring)",
}


class Teller:
    """Tells of one cluster; called after each round, by one thread."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._failing: dict[str, str] = {}
        self._away = False
        self._grace = 0
        self._version: str | None = None
        self._statistics: bool | None = None
        self._own_only = False
        self._hidden: dict[str, int] = {}
        self._queue_mode: Mode | None = None
        self._details_failing = False
        self._lacking = False

    def tell(self, snapshot: Snapshot, permanent: Collection[str], queues: QueueReader) -> None:
        """Log what is new.

        Args:
            snapshot: of this round.
            permanent: families that the broker will not tell, for lack of statistics.
            queues: how the queues are read.
        """
        parts = snapshot.parts
        own_only = is_own_only(parts)
        # One line says why all of these fail.
        skipped = {*permanent, *(UNSHOWN if own_only else ())}
        self._tell_failing({name: part.error for name, part in parts.items() if part.error}, skipped)
        if own_only and not self._own_only:
            log.warning(
                "cluster %s: its user lacks the tag `monitoring`, and the broker shows it its own only: no nodes, "
                "connections, channels and consumers, no sums, and queues only of virtual hosts where it has a "
                "permission (rabbitmqctl set_user_tags USER monitoring)",
                self._cluster,
            )
        self._own_only = own_only
        self._tell_broker(snapshot)
        self._tell_hidden(unseen(snapshot))
        self._tell_queues(len(snapshot.queues.value or ()), queues)

    def _tell_failing(self, failing: dict[str, str], skipped: Collection[str]) -> None:
        was_away, self._away = self._away, all(name in failing for name in FAST)
        if self._away:
            if not was_away:
                log.warning("cluster %s: away: %s", self._cluster, failing["overview"])
            return
        if was_away:
            log.info("cluster %s: back", self._cluster)
            # What failed while it was away is about to be read again.
            self._grace, self._failing = _PATIENCE, {}
        if self._grace > 0:
            self._grace -= 1
            return
        before, self._failing = self._failing, failing
        for family in [name for name in FAMILIES if name in failing and name not in before]:
            if family not in skipped and failing[family] != NO_STATISTICS:
                log.warning("cluster %s: %s cannot be read: %s", self._cluster, family, failing[family])
        for family in [name for name in FAMILIES if name in before and name not in failing]:
            log.info("cluster %s: %s can be read again", self._cluster, family)

    def _tell_broker(self, snapshot: Snapshot) -> None:
        overview = snapshot.overview.value
        if overview is None:
            return
        if overview.rabbitmq_version is not None and overview.rabbitmq_version != self._version:
            log.info("cluster %s: RabbitMQ %s", self._cluster, overview.rabbitmq_version)
            self._version = overview.rabbitmq_version
        if overview.statistics is False and self._statistics is not False:
            log.warning(
                "cluster %s: this broker collects no statistics (management.disable_stats or "
                "management_agent.disable_metrics_collector): there are totals of queues, health checks, what is "
                "configured; rates, nodes' figures, channels and consumers cannot be had and are asked for every 5 min",
                self._cluster,
            )
        elif overview.statistics and self._statistics is False:
            log.info("cluster %s: this broker collects statistics again", self._cluster)
        self._statistics = overview.statistics

    def _tell_hidden(self, hidden: Mapping[str, int]) -> None:
        self._hidden = {kind: self._hidden.get(kind, 0) + 1 for kind in hidden}
        for kind, rounds in self._hidden.items():
            if rounds == _PATIENCE:
                log.warning(
                    "cluster %s: sees none of the %d %s that the broker counts: %s",
                    self._cluster,
                    hidden[kind],
                    kind,
                    _REASONS[kind],
                )

    def _tell_queues(self, count: int, queues: QueueReader) -> None:
        if count:
            self._tell_mode(count, queues)
        if queues.lacking and not self._lacking:
            log.warning("cluster %s: the broker %s", self._cluster, LACKING)
        self._lacking = queues.lacking
        error = queues.details.error if queues.mode is Mode.TOTALS else None
        if error is not None and not self._details_failing:
            log.warning("cluster %s: statistics of queues cannot be read: %s", self._cluster, error)
        self._details_failing = error is not None

    def _tell_mode(self, count: int, queues: QueueReader) -> None:
        before, self._queue_mode = self._queue_mode, queues.mode
        if queues.mode is Mode.TOTALS and before is not Mode.TOTALS and self._statistics is not False:
            log.info(
                "cluster %s: %d queues: too dear to read in full every time; totals of all, and statistics by turns, "
                "suspicious ones first (see poll.budget)",
                self._cluster,
                count,
            )
        if queues.mode is Mode.FULL and before is Mode.TOTALS and not queues.lacking:
            log.info("cluster %s: %d queues: read in full every time", self._cluster, count)
