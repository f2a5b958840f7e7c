import os
import time
from pathlib import Path

import pytest

from ackscope import manifest
from ackscope.errors import DataError
from ackscope.manifest import Manifest, ManifestCache


def put(root: Path, number: int, age: float) -> None:
    """Replace the manifest by one with this number and age."""
    place = manifest.manifest_path(root, "shop")
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name("fresh")
    fresh.write_bytes(manifest.encode(Manifest("shop", number)))
    os.utime(fresh, (time.time() - age,) * 2)
    fresh.rename(place)


def test_a_state_is_parsed_once(tmp_path: Path) -> None:
    """The same object is returned until the file changes."""
    cache = ManifestCache()
    put(tmp_path, 1, age=60)
    first, second = cache.read(tmp_path, "shop"), cache.read(tmp_path, "shop")
    put(tmp_path, 2, age=30)

    assert first is second
    assert [1, 2] == [first.number, cache.read(tmp_path, "shop").number]


def test_states_of_one_moment_are_reported_apart(tmp_path: Path) -> None:
    """However quickly they follow each other."""
    cache, found = ManifestCache(), []
    for number in range(1, 10):
        put(tmp_path, number, age=0)
        found.append(cache.read(tmp_path, "shop").number)

    assert [*range(1, 10)] == found


def test_none_is_empty_and_a_broken_one_says_so_each_time(tmp_path: Path) -> None:
    """A failure is not cached."""
    cache = ManifestCache()
    assert cache.read(tmp_path, "shop") == Manifest("shop")

    put(tmp_path, 1, age=60)
    manifest.manifest_path(tmp_path, "shop").write_text("{")
    os.utime(manifest.manifest_path(tmp_path, "shop"), (1, 1))
    for _ in range(2):
        with pytest.raises(DataError, match="not a valid manifest"):
            cache.read(tmp_path, "shop")
