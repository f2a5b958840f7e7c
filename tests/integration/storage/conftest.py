"""One server of object storage for the tests of this folder; each test has a prefix of its own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from ackscope.object_path import ObjectPath
from tests.buckets import BASE, environment, object_server


@pytest.fixture(scope="session")
def server() -> Iterator[dict[str, str]]:
    """The environment of its clients, which is also set here."""
    with object_server() as values, environment(values):
        yield values


@pytest.fixture
def bucket(server) -> ObjectPath:
    """An empty prefix."""
    return ObjectPath(BASE, uuid4().hex)
