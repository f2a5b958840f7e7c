"""The state of a running lab for `lab fault` and `lab down`: a file and a folder in the user's state directory."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ackscope.errors import DataError, UsageError
from lab.node import LabNode
from lab.processes import Process

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of this user's lab.

    Attributes:
        root: parent of the two others, and of a lock file.
    """

    root: Path

    @property
    def file(self) -> Path:
        """The state file; written once the nodes are ready."""
        return self.root / "state.json"

    @property
    def folder(self) -> Path:
        """The folder of the lab itself: data, logs, cookie."""
        return self.root / "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A running lab.

    Attributes:
        broker: the real version, such as 4.3.6.
        processes: node processes, in the order of `nodes`.
        epmd: the port mapper of these nodes.
        workload: None without a workload.
        faults: name -> the process that keeps it in effect.
    """

    broker: str
    nodes: tuple[LabNode, ...]
    processes: tuple[Process, ...]
    epmd: Process | None
    workload: Process | None = None
    faults: dict[str, Process] = field(default_factory=dict)


def find_place(environ: Mapping[str, str] = os.environ) -> Place:
    """Return `$XDG_STATE_HOME/ackscope/lab`, else `~/.local/state/ackscope/lab`."""
    base = environ.get("XDG_STATE_HOME")
    home = Path(base).absolute() if base else Path.home() / ".local" / "state"
    return Place(home / "ackscope" / "lab")


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the lock against other `ackscope lab` commands of this user.

    Raises:
        UsageError: another command is running.
        DataError: the state directory cannot be written.
    """
    try:
        place.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        held = (place.root / "lock").open("wb")
    except OSError as error:
        raise DataError(f"{place.root}: {error.strerror}; set XDG_STATE_HOME to another folder") from None
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError("another `ackscope lab` command is running; wait until it has finished") from None
        yield


def save(place: Place, state: State) -> None:
    """Write the state atomically."""
    partial = place.file.with_suffix(".partial")
    partial.touch(0o600)
    partial.write_bytes(orjson.dumps({"version": _VERSION, **asdict(state)}, option=orjson.OPT_INDENT_2))
    partial.replace(place.file)


def load(place: Place) -> State | None:
    """Read the state; None if no lab is running.

    Raises:
        DataError: the file is not a state of this version.
    """
    try:
        document = orjson.loads(place.file.read_bytes())
        return _state(document)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{place.file}: cannot be read ({type(error).__name__}); run `ackscope lab down` to reset it"
        ) from None


def forget(place: Place) -> None:
    """Remove the state file."""
    place.file.unlink(missing_ok=True)


def _state(document: dict[str, Any]) -> State:
    if document["version"] != _VERSION:
        raise ValueError("another version")
    return State(
        broker=document["broker"],
        nodes=tuple(LabNode(**node) for node in document["nodes"]),
        processes=tuple(Process(**process) for process in document["processes"]),
        epmd=Process(**document["epmd"]) if document["epmd"] else None,
        workload=Process(**document["workload"]) if document["workload"] else None,
        faults={name: Process(**process) for name, process in document["faults"].items()},
    )
