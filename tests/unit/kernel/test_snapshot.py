"""Snapshots: what is derived from their parts."""

import pytest

from ackscope.clock import Instant
from ackscope.snapshot import Overview, Part, Snapshot


@pytest.mark.parametrize(
    ("broker", "version"),
    [
        ("4.3.6", (4, 3)),
        ("3.10.8+1", (3, 10)),
        ("4.3", (4, 3)),
        ("4.3-rc.1", None),
        ("4", None),
        ("", None),
        (None, None),
        ("4\N{SUPERSCRIPT TWO}.5", None),
        (f"{'4' * 5000}.3", None),
    ],
)
def test_a_version_is_two_numbers(broker, version):
    """Anything else is no version, and never an exception."""
    overview = Part(value=Overview(rabbitmq_version=broker))
    assert Snapshot(cluster="shop", taken=Instant(wall=0.0, mono=0.0), overview=overview).version == version
