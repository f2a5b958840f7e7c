"""The server of object storage that this process and its children use: S3, or Azure if `OBJECT_STORAGE` says so."""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lab.azure_server import azure_server
from lab.s3_server import BUCKET, environment, s3_server

__all__ = ["BASE", "ENDPOINT", "KEY", "azurite_ignores_offsets", "environment", "object_server", "through", "upload"]

_IS_AZURE = os.environ.get("OBJECT_STORAGE") == "azure"

BASE = f"{'az' if _IS_AZURE else 's3'}://{BUCKET}"
"""The bucket or container."""
ENDPOINT = "AZURE_STORAGE_ENDPOINT" if _IS_AZURE else "AWS_ENDPOINT_URL"
"""The variable with the address of the server."""
KEY = "AZURE_STORAGE_ACCOUNT_KEY" if _IS_AZURE else "AWS_SECRET_ACCESS_KEY"
"""The variable with the secret."""


azurite_ignores_offsets = pytest.mark.xfail(
    _IS_AZURE, strict=True, reason="delta-rs reads old versions, because Azurite ignores where a listing shall start"
)


def object_server() -> AbstractContextManager[dict[str, str]]:
    """Start the server; its value is the environment of its clients."""
    return azure_server() if _IS_AZURE else s3_server()


def through(values: dict[str, str], port: int) -> dict[str, str]:
    """The environment of clients that reach the server by another port."""
    return values | {ENDPOINT: urlsplit(values[ENDPOINT])._replace(netloc=f"127.0.0.1:{port}").geturl()}


def upload(folder: Path, target) -> None:
    """Copy a folder into the bucket."""
    for path in folder.rglob("*"):
        if path.is_file():
            (target / path.relative_to(folder)).write_bytes(path.read_bytes())
