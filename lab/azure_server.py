"""A real Azure Blob server on loopback: Azurite, which `make azure-test` installs. It keeps everything in memory."""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import requests

from ackscope.errors import MissingPart
from lab.ports import free_ports
from lab.s3_server import BUCKET, object_server

_PROGRAM = Path(__file__).parents[1] / ".tools" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
_OPTIONS = ("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent")
_ACCOUNT = "ackscope"
_KEY = base64.b64encode(b"s3cr3t-of-the-azure-test").decode()
_VERSION = "2021-08-06"


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
    with object_server(
        [str(_PROGRAM), "--blobHost", "127.0.0.1", "--blobPort", str(port), *_OPTIONS],
        lambda: _make_container(url),
        "Azurite did not start: run scripts/setup.sh azure",
        AZURITE_ACCOUNTS=f"{_ACCOUNT}:{_KEY}",
    ):
        yield {
            "AZURE_STORAGE_ENDPOINT": url,
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
        }


def _make_container(url: str) -> requests.Response:
    """Create the container with a request that is signed as "Authorize with Shared Key" of Azure's API describes."""
    date = formatdate(usegmt=True)
    # The name of the account stands twice: it is also in the path of a server that is not Azure's.
    signed = f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
    digest = hmac.new(base64.b64decode(_KEY), f"PUT{chr(10) * 12}{signed}".encode(), hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    headers = {"x-ms-date": date, "x-ms-version": _VERSION, "Authorization": f"SharedKey {_ACCOUNT}:{signature}"}
    return requests.put(f"{url}/{BUCKET}?restype=container", headers=headers, timeout=10)
