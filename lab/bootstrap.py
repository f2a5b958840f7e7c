"""Build the folder of a broker version with debootstrap, once, in the user's cache."""

import fcntl
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ackscope.errors import MissingPart


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return the folder of built brokers: `$ACKSCOPE_CACHE_DIR`, or the user's cache directory."""
    if chosen := environ.get("ACKSCOPE_CACHE_DIR"):
        return Path(chosen).absolute()
    if base := environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "ackscope"
    return Path.home() / ".cache" / "ackscope"


def build(name: str, suite: str, root: Path) -> None:
    """Build `root` from a Debian suite; it appears only once it is complete.

    Args:
        name: the requested version, for messages.
        suite: the Debian suite that has it.
        root: the folder to create.

    Raises:
        MissingPart: debootstrap is missing or failed; a failed build leaves its log and nothing else.
    """
    if shutil.which("debootstrap") is None:
        raise MissingPart("debootstrap is missing: run make setup, or apt-get install debootstrap")
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(root.with_name(f"{suite}.lock"), name):
            if not root.exists():
                _build(name, suite, root)
    except OSError as error:
        raise MissingPart(
            f"{error.filename or root}: {error.strerror}; set ACKSCOPE_CACHE_DIR to another folder"
        ) from None


def _build(name: str, suite: str, root: Path) -> None:
    partial, log = root.with_name(f"{suite}.partial"), root.with_name(f"{suite}.log")
    _announce(f"building the {name} broker (once; Debian {suite}, about 500 MB) in {root}; this takes 40 s to 2 min")
    began = time.monotonic()
    # In its own mount namespace, so that debootstrap's mounts end with it in every case.
    command = ["unshare", "--mount", "debootstrap", "--variant=minbase", "--include=rabbitmq-server", suite]
    try:
        _remove(partial)
        with log.open("wb") as output:
            done = subprocess.run(
                [*command, str(partial)], stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
            )
        if done.returncode != 0:
            raise MissingPart(f"cannot build the {name} broker: {_last_line(log)}; full log: {log}")
        partial.rename(root)
    finally:
        _remove(partial)
    _announce(f"built in {time.monotonic() - began:.0f} s")


@contextmanager
def _only_one(lock: Path, name: str) -> Iterator[None]:
    """Hold a lock file; the kernel releases it when the process ends."""
    with lock.open("wb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _announce(f"waiting for another process that is building the {name} broker")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "debootstrap printed nothing"


def _announce(line: str) -> None:
    print(f"ackscope lab: {line}", file=sys.stderr, flush=True)
