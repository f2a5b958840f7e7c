"""Runs commands and servers, and waits for them.

The tests need root (chroot, mounts), buildah, debootstrap, and Go for helm and kubeconform: `scripts/setup.sh ship`
installs them.
"""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

ROOT = Path(__file__).parents[2]


def run(*words, **options):
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, **options)

    assert 0 == done.returncode, f"{' '.join(map(str, words))[:300]}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"

    return done.stdout


def needed(program, by="ship"):
    """The path of a program, or a failure that says which argument of `scripts/setup.sh` gets it."""
    found = shutil.which(program, path=f"{ROOT / '.tools/bin'}:{os.environ['PATH']}")
    if found is None:
        pytest.fail(f"{program} is missing; run: scripts/setup.sh {by}")
    return found


def eventually(read, seconds=90.0):
    """What `read` answers once it answers something true; fails after some seconds."""
    until = time.monotonic() + seconds
    while not (answer := read()):
        assert time.monotonic() < until, f"not seen within {seconds:g} s"
        time.sleep(0.2)
    return answer


def answers(url):
    """Whether a GET of `url` succeeds."""
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False


@contextmanager
def running(process, url, stop):
    """A server while it runs, from its first answer at `url` on; `stop` has to end it with 0."""
    try:
        eventually(lambda: process.poll() is not None or answers(url))

        assert process.poll() is None, process.stdout.read()

        yield
        stop(process)

        assert 0 == process.wait(60)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
