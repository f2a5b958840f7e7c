"""Capturing packets with tcpdump, with the timestamps of the kernel."""

import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ackscope.errors import MissingPart

_WITHIN = 10.0
_SETTLE = 1.3


@contextmanager
def capturing(port: int, file: Path) -> Iterator[None]:
    """Capture the TCP packets of a port on loopback into `file` while the block runs.

    Raises:
        MissingPart: tcpdump is missing, may not capture, or lost packets.
    """
    if shutil.which("tcpdump") is None:
        raise MissingPart("tcpdump is missing: apt-get install tcpdump")
    command = ["tcpdump", "-i", "lo", "-s", "0", "-n", "-B", "32768", "--time-stamp-precision=nano"]
    process = subprocess.Popen(
        # By default tcpdump drops to a user that may not write here.
        [*command, "-Z", "root", "-w", str(file), "tcp", "port", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _wait_listening(process)
        yield
        # The kernel delivers packets in blocks; the last block comes up to a second late.
        time.sleep(_SETTLE)
    finally:
        process.terminate()
        _, said = process.communicate()
    if b"\n0 packets dropped by kernel" not in said:
        dropped = [line for line in said.decode().splitlines() if "dropped by kernel" in line]
        raise MissingPart(f"tcpdump lost packets ({', '.join(dropped) or 'unknown'}); capture on a calmer machine")


def _wait_listening(process: subprocess.Popen[bytes]) -> None:
    deadline, said = time.monotonic() + _WITHIN, b""
    while b"listening on" not in said:
        stream = process.stderr
        readable = stream is not None and select.select([stream], [], [], 0.2)[0]
        piece = os.read(stream.fileno(), 4096) if stream is not None and readable else None
        said += piece or b""
        if piece == b"" or time.monotonic() > deadline:
            process.kill()
            last = said.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise MissingPart(f"tcpdump cannot capture on loopback ({last[0]}); run as root")
