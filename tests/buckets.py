"""The S3 server of the lab as this process and its children use it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ackscope import object_path
from lab.s3_server import BUCKET, SECRET, s3_server

__all__ = ["BUCKET", "SECRET", "environment", "s3_server", "upload"]


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


def upload(folder: Path, target) -> None:
    """Copy a folder into the bucket."""
    for path in folder.rglob("*"):
        if path.is_file():
            (target / path.relative_to(folder)).write_bytes(path.read_bytes())
