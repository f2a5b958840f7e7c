"""One S3 server for the tests of this folder; each test has a prefix of its own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from ackscope.object_path import ObjectPath
from tests.buckets import BUCKET, environment, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """The environment of its clients, which is also set here."""
    with s3_server() as values, environment(values):
        yield values


@pytest.fixture
def bucket(s3) -> ObjectPath:
    """An empty prefix."""
    return ObjectPath(f"s3://{BUCKET}", uuid4().hex)
