"""The confirm probe on a quorum queue that has lost its majority."""

import signal

import pytest

from ackscope.records import Outcome
from lab.cluster import start_lab

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_without_a_majority_messages_are_undecided_and_later_acked_again(measure, run):
    """Two of three nodes stand still: neither ack nor nack, and no word of the broker. They go on: so do the acks."""
    with start_lab("4.3", nodes=3) as cluster:

        async def scenario():
            settings = {"rate": 20, "streams": ["quorum", "unroutable"], "undecided_after": 1}
            async with measure(cluster.nodes[0].amqp, "confirm", **settings) as seen:
                await seen.until_acked("quorum", 20)
                for node in cluster.processes[1:]:
                    node.signal(signal.SIGSTOP)
                try:
                    await seen.until(lambda: seen.outcome("quorum").outcomes["undecided"] >= 20, "undecided messages")
                    during = seen.outcome("quorum"), seen.outcome("unroutable")
                finally:
                    for node in cluster.processes[1:]:
                        node.signal(signal.SIGCONT)
                await seen.until_acked("quorum", seen.outcome("quorum").outcomes["acked"] + 20)
            return seen, during

        seen, (quorum, unroutable) = run(scenario())
    records = [record for record in seen.messages if record.stream == "quorum"]

    assert quorum.success is False
    assert 0 == quorum.outcomes["nacked"]
    assert 0 == unroutable.outcomes["undecided"]
    assert {Outcome.ACKED, Outcome.TIMED_OUT} == {record.outcome for record in records}
    assert all(record.confirm is None for record in records if record.outcome is Outcome.TIMED_OUT)
    assert len(records) == len({(record.epoch, record.seq) for record in records})
