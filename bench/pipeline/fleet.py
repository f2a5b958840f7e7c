"""Realistic history of a made-up fleet, with planted incidents whose truth is known.

    python -m bench.pipeline.fleet --to DIR [--clusters 1] [--queues 100] [--days 30] [--incidents 12] [--seed 1]

Queues of very different sizes with daily and weekly seasons, slow and fast noise, short bursts, nightly batches,
deploys (consumers away for a minute), chains of queues, dead letters, queues that come and go, and stretches nobody
looked at. Everything follows from the seed. Nothing here knows how changes are looked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.cli import Parser
from bench.bench import tell
from bench.pipeline import findings, incident_plan, minutes, probing
from bench.pipeline.cluster import ClusterShape, shape
from bench.pipeline.incident_plan import Incident, Planned
from bench.pipeline.simulation import Simulation

START = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp())
"""A Monday, seconds since 1970."""

_NODES = 3


@dataclass(frozen=True)
class Fleet:
    """The history of one cluster; to be walked through once, from its beginning.

    Attributes:
        cluster: its name.
        seed: all chance follows from it.
        start: seconds since 1970, a full hour.
    """

    cluster: str = "shop"
    seed: int = 1
    queues: int = 100
    days: int = 30
    incidents: int = 12
    start: int = START

    @property
    def total(self) -> int:
        """Minutes of the history."""
        return self.days * 1440

    @cached_property
    def shape(self) -> ClusterShape:
        """Its queues."""
        return shape(self._dice("shape"), self.queues, _NODES, self.total)

    @cached_property
    def plan(self) -> tuple[Planned, ...]:
        """What shall happen in it."""
        return incident_plan.plan(self._dice("plan"), self.shape, self.total, self.incidents)

    @cached_property
    def simulation(self) -> Simulation:
        """It in motion, in steps of a minute."""
        return Simulation(self.shape, self.plan, self._dice("motion"), self.start, self.total)

    def minutes(self) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        """Day by day: its first hour, counted since 1970, and its rows by the name of the table of minutes.

        Tables: queues, channels, consumers, nodes, polls, latency, outcomes. Not every minute has rows.
        """
        dice = self._dice("minutes")
        for stretch in self.simulation.stretches(1440):
            rows = minutes.rolled_up(dice, stretch, self.shape)
            yield stretch.first // 3600, rows | probing.minutes(dice, stretch, self.shape.node_names)

    def landing(self, step: int = 30, hours: int = 1, times: float = 1.0) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        """The same cluster as landing rows: (hour since 1970, rows by the name of the table), `hours` at once.

        Args:
            step: seconds from poll to poll.
            hours: how many at once.
            times: how many probe messages, in times of the usual rates; 0 for none.
        """
        from bench.pipeline.landed import LandingRows  # noqa: PLC0415  only who lands needs it

        dice, landed = self._dice("landing"), LandingRows(self.shape)
        motion = Simulation(self.shape, self.plan, self._dice("motion"), self.start, self.total, step)
        for stretch in motion.stretches(hours * 60):
            rows = landed.rows(dice, stretch)
            if times:
                rows["probe_messages"] = probing.messages(
                    dice, stretch, self.shape.node_names, f"run-{self.seed}", times
                )
            yield stretch.first // 3600, rows

    def truth(self) -> list[Incident]:
        """The incidents; known once `minutes` was walked through to its end."""
        return [self._truth_of(it) for it in self.plan]

    def finding_events(self) -> pa.Table:
        """Rows of `finding_events` of the whole history, after `minutes`: of incidents, mostly, and of other things."""
        return findings.events(self._dice("findings"), self.shape, self.plan, self._settled, self.start, self.total)

    def _truth_of(self, planned: Planned) -> Incident:
        synced = True if planned.kind == incident_plan.DISK_SLOWS else None
        node = planned.node if planned.kind == incident_plan.NODE_DIES else -1
        streams = probing.subjects(self.shape.node_names, synced=synced, node=node)
        times = (self._iso(planned.began), self._iso(planned.ended), self._iso(self._settled.get(planned)))
        return incident_plan.incident(planned, self.shape, self.cluster, times, streams)

    @property
    def _settled(self) -> dict[Planned, int]:
        return self.simulation.settled

    def _iso(self, minute: int | None) -> str:
        return "" if minute is None else datetime.fromtimestamp(self.start + minute * 60, UTC).isoformat()

    def _dice(self, what: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, *what.encode()])


def fleets(clusters: int, queues: int, days: int, incidents: int, seed: int) -> list[Fleet]:
    """Clusters of different sizes: the first has `queues`, each that follows two thirds of that, 20 at least."""
    return [
        Fleet(f"cluster-{number + 1}", seed + number, max(20, round(queues * (2 / 3) ** number)), days, incidents)
        for number in range(clusters)
    ]


def write_truth(path: Path, fleet: Fleet) -> None:
    """The truth of a fleet as one JSON document, once its history was walked through."""
    document = {"cluster": fleet.cluster, "seed": fleet.seed, "days": fleet.days, "queues": fleet.queues}
    incidents = [it.as_dict() for it in fleet.truth()]
    path.write_bytes(orjson.dumps(document | {"incidents": incidents}, option=orjson.OPT_INDENT_2) + b"\n")


def main(words: list[str] | None = None) -> int:
    """Write a history: a Parquet file a table and day, and the truth beside it."""
    parser = Parser(prog="python -m bench.pipeline.fleet", description="write made-up history with planted incidents")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="folder that is made")
    for name, default in (("clusters", 1), ("queues", 100), ("days", 30), ("incidents", 12), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    args = parser.parse_args(words)
    for fleet in fleets(args.clusters, args.queues, args.days, args.incidents, args.seed):
        folder: Path = args.to / fleet.cluster
        folder.mkdir(parents=True, exist_ok=True)
        rows = 0
        for first_hour, tables in fleet.minutes():
            for name, table in tables.items():
                pq.write_table(table, folder / f"{name}.{first_hour}.parquet", compression="zstd")
                rows += table.num_rows
        pq.write_table(fleet.finding_events(), folder / "finding_events.parquet", compression="zstd")
        write_truth(folder / "truth.json", fleet)
        tell(f"{folder}: {rows} rows of {fleet.days} days, {fleet.queues} queues, {len(fleet.plan)} incidents")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
