"""What the confirm probe says of a slow disk, which strace(1) makes."""

import pytest

from ackscope.records import BatchingKind
from lab.slow_disk import slow_disk
from probes.latency_layers import decompose

pytestmark = [pytest.mark.integration, pytest.mark.slow]

DELAY = 0.1
"""Seconds. How near the estimate comes is for `bench.probes.slow_disk` to show; here it must be of that kind."""


def test_a_slow_disk_is_measured_where_confirms_wait_for_it_and_only_there(lab, measure, run):
    """Quorum queues, and classic ones before 3.13, sync first: the time is found. Classic ones of 4.3 do not."""
    waits = ("quorum", "classic") if lab.broker.startswith("3.10") else ("quorum",)

    async def scenario():
        settings = {"rate": 200, "control_rate": 50, "streams": ["transient", "classic", "quorum"]}
        reported, layers = {}, {}
        async with measure(lab.nodes[0].amqp, "confirm", **settings) as seen:
            for stream in ("transient", "classic", "quorum"):
                await seen.until_acked(stream, 10)

            def found():
                # As they run: a stream that is stopped leaves messages undecided, on such a disk.
                reported.update({stream: seen.outcome(stream) for stream in ("transient", "classic", "quorum")})
                layers.update({layer.name: layer for layer in decompose(list(reported.values()))})
                # A transient message waits for no disk: once it has enough of them, the others have theirs.
                enough = reported["transient"].outcomes["acked"] >= 300 and layers["replicate"].seconds is not None
                return enough and all(reported[stream].batching.kind is BatchingKind.SYNC for stream in waits)

            await seen.until(found, f"a sync time on {waits}, and what replication costs")
        return reported, layers

    with slow_disk(lab.processes[0].pid, DELAY):
        reported, layers = run(scenario())

    for stream, outcome in reported.items():
        if stream in waits:
            assert outcome.batching.interval == pytest.approx(DELAY, rel=0.3)
            assert outcome.batching.fsync
        else:
            assert outcome.batching.kind is not BatchingKind.SYNC
    assert layers["replicate"].seconds > DELAY
    if "classic" not in waits:
        assert layers["persist"].seconds is None or layers["persist"].seconds < DELAY / 2
