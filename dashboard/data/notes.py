"""Notes that people write during an incident, kept on the server: a file of one JSON document a line, only added to."""

import fcntl
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

LONGEST = 2000
"""Characters of one note."""
_MOST = 20 * 1024 * 1024
"""Bytes of the file: some 10,000 long notes; more is no notebook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One note.

    Attributes:
        at: the moment that it is about, seconds since 1970.
        written: when it was written.
        author: as the writer called himself, or was signed in; "" where not told.
    """

    cluster: str
    at: float
    written: float
    author: str
    text: str


def read(path: Path, cluster: str, start: float, end: float) -> tuple[tuple[Note, ...], str | None]:
    """The notes of a cluster about moments from `start` to `end`, in their order; and why some cannot be read.

    A line that is none (a disk was full, somebody edited it) costs no other.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return (), None
    except OSError as error:
        return (), f"{path}: cannot be read ({(error.strerror or 'unknown').lower()})"
    found, odd = [], 0
    for line in lines:
        try:
            note = Note(**orjson.loads(line))
            if note.cluster == cluster and start <= note.at <= end:
                found.append(note)
        except (orjson.JSONDecodeError, TypeError):
            odd += 1
    problem = f"{path}: {odd} lines are no notes, and are left out" if odd else None
    return tuple(sorted(found, key=lambda note: (note.at, note.written))), problem


def add(path: Path, note: Note) -> str | None:
    """Add a note, durably; why that failed, or None.

    Two writers wait for each other; a half line of one that was killed is ended first.
    """
    text = note.text.strip()
    if not text:
        return "a note needs some words"
    if len(text) > LONGEST:
        return f"a note has {LONGEST:,} characters at most, this one has {len(text):,}: make two of it"
    line = orjson.dumps({**asdict(note), "text": text}) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            if size + len(line) > _MOST:
                return f"{path} is full ({_MOST // 2**20} MiB): move it away, and a new one is begun"
            if size:
                file.seek(size - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"{path}: cannot be written ({(error.strerror or 'unknown').lower()})"
    return None
