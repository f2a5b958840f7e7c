"""A real S3 server on loopback, for a `with` block: moto, which has conditional puts."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import requests

from ackscope import object_path

BUCKET = "history"
SECRET = "s3cr3t-of-the-test"


@contextmanager
def s3_server(port: int = 0) -> Iterator[dict[str, str]]:
    """Start the server with one bucket; yield the environment of its clients."""
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(requests.RequestException):
                if requests.put(f"{url}/{BUCKET}", timeout=10).ok:
                    break
            time.sleep(0.1)
        else:
            raise RuntimeError("moto did not start; install it: pip install 'moto[server]'")
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }
    finally:
        process.kill()
        process.wait()


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables for this process and its children."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    # A client stays with the server that it was made for.
    object_path._stores.clear()
    try:
        yield
    finally:
        object_path._stores.clear()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def upload(folder: Path, target) -> None:
    """Copy a folder into the bucket."""
    for path in folder.rglob("*"):
        if path.is_file():
            (target / path.relative_to(folder)).write_bytes(path.read_bytes())
