"""Restarts of an exporter while a receiver and the bucket are away: the benchmark, for 84 s."""

from argparse import Namespace

import pytest

from bench.exporter.restarts import lines, measure

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_restarts_lose_no_notification_and_no_landing_row():
    """Each finding is notified once, also to the receiver that was away; each poll is in the bucket afterwards."""
    document = measure(Namespace(broker="4.3", minutes=1.4, every=22.0, seed=31))
    print("\n".join(lines(document)))
    findings = sum(document["findings"].values())

    assert document["findings"]["ended"]
    assert document["restarts"] >= 3
    assert [0] == document["exit_codes"]
    assert findings >= 4
    assert all(
        each == {"once": findings, "repeated": 0, "lost": 0, "false": 0} for each in document["receivers"].values()
    )
    assert all(document["landed"][family] >= polled for family, polled in document["polled"].items())
    assert document["upload_lag_seconds"] > 60
