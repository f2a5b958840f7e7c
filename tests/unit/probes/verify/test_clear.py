import asyncio

import pytest

from probes.verify.cleanup import clear


def test_nothing_of_others_is_ever_deleted(ground):
    """A name that is not of the run is an error of the check that recorded it."""
    ground.queues.append("orders")

    with pytest.raises(ValueError, match="'orders' does not belong to run"):
        asyncio.run(clear(ground))


def test_what_cannot_be_deleted_is_reported(ground):
    """With the reason, and that the broker does it in the end."""
    ground.queues.append(f"{ground.prefix}.s01")
    (reported,) = asyncio.run(clear(ground))

    assert reported.startswith(f"'{ground.prefix}.s01' is left behind (127.0.0.1:1: ")
    assert reported.endswith("the broker deletes it within 5 minutes of its last use")
