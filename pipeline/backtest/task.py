"""One task: replay some hours of one cluster. Runs on an executor, and exchanges JSON with the driver."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from ackscope.clock import iso
from ackscope.errors import AckscopeError
from ackscope.object_path import place
from ackscope.tables import HEARTBEAT
from diagnosis.rules import RULES
from diagnosis.thresholds import Thresholds
from pipeline.backtest.episodes import Episode
from pipeline.backtest.recorded import FieldReads
from pipeline.backtest.replay import replay
from pipeline.backtest.snapshots import RecordedSnapshots
from pipeline.backtest.sources import read_landing, read_minutes
from pipeline.backtest.stretches import LANDING


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """What to replay.

    Attributes:
        grain: where rows come from.
        start, end: seconds since 1970; findings of this time are reported.
        lead: seconds before `start` that are replayed as well.
        landing: the landing folder; None without one.
        rollups: the rollup folder.
        files: landing table -> files that may have rows of this time.
        settings: the thresholds to compare, as JSON documents.
        rules: names of the rules to compare.
        related: names of these and of all others that are run where one of these has a finding.
    """

    cluster: str
    grain: str
    start: float
    end: float
    lead: float
    landing: str | None
    rollups: str
    files: Mapping[str, Sequence[str]]
    settings: Sequence[Mapping[str, Any]]
    rules: Sequence[str]
    related: Sequence[str]


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a task found.

    Attributes:
        episodes: by setting.
        rows: rows that were read.
        diagnoses: snapshots that were diagnosed.
        seconds, reading_seconds: how long it took, and the part of it before the first diagnosis.
        judged: rule -> number of diagnoses in which it was evaluated.
        lacks: rule -> what it read and the history does not have.
        known, existing: recorded and existing channels and consumers, added up over all readings.
        first, last: of the first and last diagnosis, seconds since 1970.
        error: why it failed.
    """

    cluster: str
    start: float
    end: float
    grain: str
    episodes: list[list[Episode]] = field(default_factory=list)
    rows: int = 0
    diagnoses: int = 0
    seconds: float = 0.0
    reading_seconds: float = 0.0
    judged: Mapping[str, int] = field(default_factory=dict)
    lacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    known: Mapping[str, int] = field(default_factory=dict)
    existing: Mapping[str, int] = field(default_factory=dict)
    first: float | None = None
    last: float | None = None
    error: str | None = None


def encode(task: ReplayTask) -> bytes:
    """Return a task as JSON."""
    return orjson.dumps(asdict(task))


def decode(result: bytes) -> TaskResult:
    """Return the result of `run`."""
    document = orjson.loads(result)
    episodes = [[Episode(**{**it, "key": tuple(it["key"])}) for it in each] for each in document["episodes"]]
    return TaskResult(**{**document, "episodes": episodes})


def run(encoded: bytes) -> bytes:
    """Run a task and return its result as JSON. An error that the user can act on is part of the result."""
    task = ReplayTask(**orjson.loads(encoded))
    try:
        return orjson.dumps(asdict(_replayed(task, time.process_time)))
    except AckscopeError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001  the boundary of a task: a defect in a rule is one line, and not Spark's page
        reason = f"the replay of {task.cluster} from {iso(task.start)} failed: {type(error).__name__}: {error}"
    return orjson.dumps(asdict(TaskResult(task.cluster, task.start, task.end, task.grain, error=reason)))


def _replayed(task: ReplayTask, clock: Callable[[], float]) -> TaskResult:
    began, since = clock(), task.start - task.lead
    if task.grain == LANDING and task.landing is not None:
        rows = read_landing(place(task.landing), task.cluster, task.files, since - HEARTBEAT, task.end)
    else:
        rows = read_minutes(place(task.rollups), task.cluster, since, task.end)
    read = clock()
    reads = FieldReads()
    snapshots = RecordedSnapshots(task.cluster, rows, reads)
    done = replay(
        task.cluster,
        (it for it in snapshots if since <= it.taken.wall < task.end),
        [Thresholds.model_validate(it) for it in task.settings],
        [rule for rule in RULES if rule.name in task.rules],
        [rule for rule in RULES if rule.name in task.related],
        reads,
        task.start,
    )
    return TaskResult(
        task.cluster,
        task.start,
        task.end,
        task.grain,
        done.episodes,
        rows.count,
        done.diagnoses,
        clock() - began,
        read - began,
        dict(done.judged),
        {rule: sorted(found) for rule, found in reads.found.items()},
        snapshots.known,
        snapshots.existing,
        done.first,
        done.last,
    )
