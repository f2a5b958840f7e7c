"""A real Azure Blob server on loopback: Azurite, which `make azure-test` installs. It keeps everything in memory."""

import base64
import hashlib
import hmac
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from pathlib import Path

import requests

from ackscope.errors import MissingPart
from lab.ports import free_ports
from lab.s3_server import BUCKET

_PROGRAM = Path(__file__).parents[1] / ".tools" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
_OPTIONS = ("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent")
_ACCOUNT = "ackscope"
_KEY = base64.b64encode(b"s3cr3t-of-the-azure-test").decode()
_VERSION = "2021-08-06"
_START_SECONDS = 60.0


@contextmanager
def azure_server() -> Iterator[dict[str, str]]:
    """Start the server with one container, named as the bucket of the S3 server; yield the environment of its clients.

    Raises:
        MissingPart: it is not installed, or did not start.
    """
    if not _PROGRAM.exists():
        raise MissingPart("Azurite is not installed: run scripts/setup.sh azure")
    port = free_ports(1)[0]
    url = f"http://127.0.0.1:{port}/{_ACCOUNT}"
    process = subprocess.Popen(
        [str(_PROGRAM), "--blobHost", "127.0.0.1", "--blobPort", str(port), *_OPTIONS],
        env=os.environ | {"AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_KEY}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(requests.RequestException):
                if _make_container(url):
                    break
            time.sleep(0.1)
        else:
            raise MissingPart("Azurite did not start: run scripts/setup.sh azure")
        yield {
            "AZURE_STORAGE_ENDPOINT": url,
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
        }
    finally:
        process.kill()
        process.wait()


def _make_container(url: str) -> bool:
    """Create the container with a request that is signed as "Authorize with Shared Key" of Azure's API describes."""
    date = formatdate(usegmt=True)
    # The name of the account stands twice: it is also in the path of a server that is not Azure's.
    signed = f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
    digest = hmac.new(base64.b64decode(_KEY), f"PUT{chr(10) * 12}{signed}".encode(), hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    headers = {"x-ms-date": date, "x-ms-version": _VERSION, "Authorization": f"SharedKey {_ACCOUNT}:{signature}"}
    return requests.put(f"{url}/{BUCKET}?restype=container", headers=headers, timeout=10).ok
