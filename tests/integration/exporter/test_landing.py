import pyarrow.dataset as ds
import pytest

from ackscope.snapshot import FAMILIES
from tests.integration.exporter.running import Management, eventually, exporting

pytestmark = pytest.mark.integration

QUIET, PASSING = "exporter-test.quiet", "exporter-test.passing"


@pytest.fixture
def node(lab):
    """A node with a queue at rest that holds two messages; what is left of the test goes with it."""
    node, management = lab.nodes[0], Management(lab.nodes[0])
    management.declare(QUIET, "classic")
    management.publish(QUIET, 2)
    yield node
    management.sweep("exporter-test.")


def rows(exporter, table):
    """What a reader finds of a table, by time."""
    found = ds.dataset(exporter.landing / table, partitioning="hive").to_table().to_pylist()
    return sorted(found, key=lambda row: row["at"])


def test_a_real_broker_is_landed_as_changes(node, tmp_path):
    """A queue comes, fills and goes beside one at rest: the one is reported step by step, the other hardly at all."""
    management = Management(node)
    with exporting(node, tmp_path, probes={"enabled": []}) as exporter:

        def shown(queue):
            return exporter.value(f'rabbitmq_queue_messages_ready{{cluster="shop",vhost="/",queue="{queue}"}}')

        eventually(lambda: shown(QUIET) == 2)
        management.declare(PASSING, "classic")
        eventually(lambda: shown(PASSING) is not None)
        management.publish(PASSING, 3)
        eventually(lambda: shown(PASSING) == 3)
        management.sweep(PASSING)
        eventually(lambda: shown(PASSING) is None)
        code, _ = exporter.stop()
    samples, polls, nodes = (rows(exporter, f"{name}_samples") for name in ("queue", "poll", "node"))
    passing = [row for row in samples if row["queue"] == PASSING]
    quiet = [row for row in samples if row["queue"] == QUIET]
    good = [row for row in polls if row["family"] == "queues" and row["success"]]

    assert 0 == code
    assert (True, True) == (passing[0]["gone"], passing[-1]["gone"])
    assert not any(row["gone"] for row in passing[1:-1])
    assert {0, 3} <= {row["messages_ready"] for row in passing[1:-1]}
    assert 2 == quiet[-1]["messages_ready"]
    assert len(quiet) < len(good) / 2
    assert {row["at"] for row in samples} <= {row["at"] for row in good}
    assert [True] + [False] * (len(good) - 1) == [row["whole"] for row in good]
    assert set(FAMILIES) == {row["family"] for row in polls}
    assert {node.name} == {row["node"] for row in nodes}
    assert all(row["running"] for row in nodes)
