"""What snapshots, verdicts and probes bring, on its way to the landing files.

Loaded only where something is landed: Arrow alone is 40 MB of memory.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from ackscope.clock import Clock
from ackscope.findings import DiagnosisResult
from ackscope.snapshot import Snapshot
from ackscope.tables import ACK_BURSTS, FINDING_EVENTS, PROBE_MESSAGES, PROBE_STEPS
from exporter.landing.blocks import record_blocks
from exporter.landing.samples import CHANGES, ClusterSamples
from exporter.landing.settings import LandingSettings
from exporter.landing.writer import LandingWriter

log = logging.getLogger(__name__)


class LandingSink:
    """Takes what is new in each snapshot, and every record of the probes.

    Args:
        directory: root of the landing tables.
        settings: how often, how much, how long.
        own_prefixes: queues that are left out.
        clock: names the files.

    Attributes:
        writer: what writes the files; started and stopped by whoever made this.
    """

    def __init__(self, directory: Path, settings: LandingSettings, own_prefixes: Sequence[str], clock: Clock) -> None:
        self.writer = LandingWriter(directory, settings, clock)
        self._settings, self._own_prefixes, self._clock = settings, tuple(own_prefixes), clock
        self._samples: dict[str, ClusterSamples] = {}
        self._drop_counts: dict[str, int] = {}

    def apply(self, settings: LandingSettings, own_prefixes: Sequence[str], clusters: Collection[str]) -> None:
        """Go by these settings from now on; what was learnt of other clusters is forgotten."""
        self._settings, self._own_prefixes = settings, tuple(own_prefixes)
        for name in self._samples.keys() - set(clusters):
            del self._samples[name]
            self._drop_counts.pop(name, None)
        self.writer.apply(settings)
        for samples in list(self._samples.values()):
            samples.apply(settings)

    def snapshot(self, snapshot: Snapshot, shared: Snapshot, verdict: DiagnosisResult | None) -> None:
        """Land what is new in a snapshot, and in the verdict on it.

        Args:
            snapshot: as it was read.
            shared: the same as the window holds it: what is equal to what was before is the very object of before.
            verdict: the latest one.
        """
        cluster, writer = snapshot.cluster, self.writer
        samples = self._samples.get(cluster)
        if samples is None:
            samples = self._samples[cluster] = ClusterSamples(cluster, self._settings, self._own_prefixes)
        if self._drop_counts.setdefault(cluster, writer.drop_count) != writer.drop_count:
            self._drop_counts[cluster] = writer.drop_count
            samples.resend_all(*CHANGES, FINDING_EVENTS)
        for table, take in samples.steps(snapshot, shared, verdict, self._clock.now()):
            # The boundary of each table: a defect costs its rows, and neither the others nor the poll.
            try:
                batch = take()
            except Exception:
                samples.resend_all(table)
                if writer.defect(table) == 1:
                    log.exception("cluster %s: rows of %s cannot be made; told once, and counted", cluster, table.name)
                continue
            writer.add(batch.blocks)
            writer.count_dropped(table, batch.dropped)

    def records(
        self,
        cluster: str,
        messages: Iterable[Any],
        bursts: Iterable[Any],
        steps: Iterable[Any],
    ) -> None:
        """Land what probes lived through: objects that bear the names of their tables' columns."""
        self.writer.add(record_blocks(PROBE_MESSAGES, cluster, messages))
        self.writer.add(record_blocks(ACK_BURSTS, cluster, bursts))
        self.writer.add(record_blocks(PROBE_STEPS, cluster, steps))
