"""Notes that people write during an incident: an append-only file on the server, one JSON document per line."""

import fcntl
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

MAX_CHARACTERS = 2000
"""Per note."""
# Bytes of the file: about 10,000 long notes.
_MAX_BYTES = 20 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One note.

    Attributes:
        at: the time that it is about, seconds since 1970.
        written: when it was written, seconds since 1970.
        author: name that the writer gave; "" if none.
    """

    cluster: str
    at: float
    written: float
    author: str
    text: str


def read(path: Path, cluster: str, start: float, end: float) -> tuple[tuple[Note, ...], str | None]:
    """The notes of a cluster from `start` to `end`, in order of time, and why some could not be read (or None).

    Invalid lines (the disk was full, somebody edited the file) are skipped.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return (), None
    except OSError as error:
        return (), f"{path}: cannot be read ({(error.strerror or 'unknown').lower()})"
    found, invalid = [], 0
    for line in lines:
        try:
            note = Note(**orjson.loads(line))
            if note.cluster == cluster and start <= note.at <= end:
                found.append(note)
        except (orjson.JSONDecodeError, TypeError):
            invalid += 1
    problem = f"{path}: {invalid} invalid lines skipped" if invalid else None
    return tuple(sorted(found, key=lambda note: (note.at, note.written))), problem


def add(path: Path, note: Note) -> str | None:
    """Append a note and sync it to disk; returns why that failed, or None.

    The file is locked while it is written. An incomplete last line, left by a killed writer, is terminated first.
    """
    text = note.text.strip()
    if not text:
        return "the note is empty"
    if len(text) > MAX_CHARACTERS:
        return f"a note may have {MAX_CHARACTERS:,} characters, this one has {len(text):,}; split it"
    line = orjson.dumps({**asdict(note), "text": text}) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            if size + len(line) > _MAX_BYTES:
                return f"{path} is full ({_MAX_BYTES // 2**20} MiB); move it away, and a new file is started"
            if size:
                file.seek(size - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"{path}: cannot be written ({(error.strerror or 'unknown').lower()})"
    return None
