"""The S3 server of the lab as this process and its children use it."""

from pathlib import Path

from lab.s3_server import BUCKET, SECRET, environment, s3_server

__all__ = ["BUCKET", "SECRET", "environment", "s3_server", "upload"]


def upload(folder: Path, target) -> None:
    """Copy a folder into the bucket."""
    for path in folder.rglob("*"):
        if path.is_file():
            (target / path.relative_to(folder)).write_bytes(path.read_bytes())
