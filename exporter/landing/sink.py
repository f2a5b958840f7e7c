"""The landing sink: turns snapshots, diagnosis results and probe records into landing rows.

Imported only if used: Arrow alone takes 40 MB of memory.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ackscope.clock import Clock
from ackscope.findings import DiagnosisResult
from ackscope.log import get_logger
from ackscope.object_path import Place
from ackscope.snapshot import Snapshot
from ackscope.tables import ACK_BURSTS, FINDING_EVENTS, PROBE_MESSAGES, PROBE_STEPS
from exporter.landing.blocks import record_blocks
from exporter.landing.samples import CHANGES, ClusterSamples
from exporter.landing.settings import LandingSettings
from exporter.landing.writer import LandingWriter

log = get_logger(__name__)


class LandingSink:
    """Lands what is new in each snapshot, and every probe record.

    Args:
        directory: root of the landing tables.
        settings: intervals and limits.
        own_prefixes: prefixes of queues that are not landed.
        clock: names the files.

    Attributes:
        writer: writes the files; the owner starts and stops it.
    """

    def __init__(self, directory: Place, settings: LandingSettings, own_prefixes: Sequence[str], clock: Clock) -> None:
        self.writer = LandingWriter(directory, settings, clock)
        self._settings, self._own_prefixes, self._clock = settings, tuple(own_prefixes), clock
        self._samples: dict[str, ClusterSamples] = {}
        self._drop_counts: dict[str, int] = {}

    def apply(self, settings: LandingSettings, own_prefixes: Sequence[str], clusters: Collection[str]) -> None:
        """Apply new settings. State of removed clusters is dropped."""
        self._settings, self._own_prefixes = settings, tuple(own_prefixes)
        for name in self._samples.keys() - set(clusters):
            del self._samples[name]
            self._drop_counts.pop(name, None)
        self.writer.apply(settings)
        for samples in list(self._samples.values()):
            samples.apply(settings)

    def snapshot(self, snapshot: Snapshot, shared: Snapshot, verdict: DiagnosisResult | None) -> None:
        """Land what is new in a snapshot and in its diagnosis.

        Args:
            snapshot: the snapshot as it was read.
            shared: the same snapshot from the window. Equal objects are identical to those of the previous snapshot.
            verdict: latest diagnosis.
        """
        cluster, writer = snapshot.cluster, self.writer
        samples = self._samples.get(cluster)
        if samples is None:
            samples = self._samples[cluster] = ClusterSamples(cluster, self._settings, self._own_prefixes)
        if self._drop_counts.setdefault(cluster, writer.drop_count) != writer.drop_count:
            self._drop_counts[cluster] = writer.drop_count
            samples.resend_all(*CHANGES, FINDING_EVENTS)
        for table, take in samples.steps(snapshot, shared, verdict, self._clock.now()):
            # Boundary of each table: a defect loses its rows, but not those of other tables, and does not stop polling.
            try:
                batch = take()
            except Exception:
                samples.resend_all(table)
                if writer.defect(table) == 1:
                    log.exception(
                        "rows cannot be created; logged once, then counted", cluster=cluster, table=table.name
                    )
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
        """Land probe records, whose attributes are named like the columns."""
        self.writer.add(record_blocks(PROBE_MESSAGES, cluster, messages))
        self.writer.add(record_blocks(ACK_BURSTS, cluster, bursts))
        self.writer.add(record_blocks(PROBE_STEPS, cluster, steps))
