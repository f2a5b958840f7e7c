"""A real S3 server on loopback: moto, which has conditional puts. It keeps everything in memory."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import requests

from ackscope import object_path
from ackscope.errors import MissingPart
from lab.ports import free_ports

BUCKET = "history"
SECRET = "s3cr3t-of-the-test"  # noqa: S105  of a server on loopback that takes any
_START_SECONDS = 60.0


@contextmanager
def s3_server(port: int = 0) -> Iterator[dict[str, str]]:
    """Start the server with one bucket; yield the environment of its clients.

    Raises:
        MissingPart: it did not start.
    """
    port = port or free_ports(1)[0]
    url = f"http://127.0.0.1:{port}"
    with object_server(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        lambda: requests.put(f"{url}/{BUCKET}", timeout=10),
        "moto did not start: run make setup-test, or pip install 'moto[server]'",
    ):
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }


@contextmanager
def object_server(
    words: Sequence[str], make_bucket: Callable[[], requests.Response], missing: str, **variables: str
) -> Iterator[None]:
    """Run the process of an object storage server, and wait until it has a bucket.

    Args:
        words: its command.
        make_bucket: the request that makes the bucket; repeated until it is accepted.
        missing: the error if the server does not start.
        **variables: environment variables beside those of this process.

    Raises:
        MissingPart: it did not start.
    """
    process = subprocess.Popen(words, env=os.environ | variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(requests.RequestException):
                if make_bucket().ok:
                    break
            time.sleep(0.1)
        else:
            raise MissingPart(missing)
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables for this process and its children."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    # A client stays with the server that it was made for.
    object_path._stores.clear()  # noqa: SLF001  the product's servers do not change
    try:
        yield
    finally:
        object_path._stores.clear()  # noqa: SLF001  as above
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
