import os
import signal
import subprocess
import sys

import pytest

from lab.ports import free_ports
from lab.workload.__main__ import JOBS
from lab.workload.client import PublishJob

NOWHERE = [sys.executable, "-m", "lab.workload", "--amqp"]


def test_the_shop_is_modest():
    """At most ten connections, 40 to 60 messages per second published."""
    rate = sum(job.rate for job in JOBS if isinstance(job, PublishJob))

    assert len(JOBS) <= 10
    assert 40 <= rate <= 60


def test_every_connection_says_who_it_is():
    """Diagnosis names the client by it."""
    names = [job.name for job in JOBS]

    assert len(names) == len(set(names))
    assert all(name.startswith("shop-") for name in names)


def test_the_end_of_its_input_ends_it():
    """Whoever started it holds the pipe: it cannot outlive them, even with no broker to talk to."""
    url = f"amqp://guest:secret@127.0.0.1:{free_ports(1)[0]}"
    with subprocess.Popen([*NOWHERE, url], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shop:
        try:
            first = shop.stderr.readline()
            _, rest = shop.communicate(timeout=60)
        finally:
            shop.kill()

    assert 0 == shop.returncode
    assert "no AMQP connection" in first
    assert "secret" not in first + rest


def test_sigterm_ends_it():
    """Without a pipe it runs until a signal ends it."""
    url = f"amqp://guest:guest@127.0.0.1:{free_ports(1)[0]}"
    with subprocess.Popen([*NOWHERE, url], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as shop:
        try:
            # Its first words come from threads that start after the signal is handled.
            shop.stderr.readline()
            assert shop.poll() is None
            os.kill(shop.pid, signal.SIGTERM)
            shop.communicate(timeout=60)
        finally:
            shop.kill()

    assert 0 == shop.returncode


@pytest.mark.parametrize("module", ["lab.workload", "lab.faults"])
def test_a_wrong_address_is_one_line(module):
    """With the option that it came from."""
    words = ["requeue-loop", "--management", "http://127.0.0.1:1"] if module == "lab.faults" else []

    done = subprocess.run(
        [sys.executable, "-m", module, *words, "--amqp", "localhost"], capture_output=True, text=True, check=False
    )

    assert 3 == done.returncode
    assert 1 == len(done.stderr.splitlines())
    assert done.stderr.startswith(f"{module}: --amqp: no scheme, expected amqp, as in amqp://")
