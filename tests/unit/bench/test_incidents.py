"""Comparison of answers with planted incidents."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from ackscope.ranking import ChangePoint
from ackscope.tables.arrow import arrow_schema
from bench.pipeline.fleet import Fleet
from bench.pipeline.incident_plan import AffectedObject, Incident
from bench.pipeline.incidents import explains, hosts_of, objects, reported
from pipeline.analysis.analysis_state import CANDIDATES

BEGAN = datetime(2026, 1, 20, 3, tzinfo=UTC)


@pytest.mark.parametrize("seed", range(1, 13))
def test_what_an_incident_happens_to_is_there(seed):
    """No incident is planted on a queue that is gone before it ends: nobody could find it."""
    fleet = Fleet(seed=seed)

    assert all(it.ended < fleet.shape.removed[it.queue] for it in fleet.plan if it.queue >= 0)


@pytest.fixture
def shape():
    """A cluster of a hundred queues."""
    return Fleet(seed=1).shape


@pytest.mark.parametrize(
    ("kind", "other"), [("queue", 0), ("channel", 0), ("consumer", 0), ("queue", 1), ("channel", 1)]
)
def test_an_incident_explains_what_moved_of_its_queue(shape, kind, other):
    """Channels and consumers of its queue belong to it, whatever their names; those of other queues do not."""
    host = next(host for host, queue in hosts_of(shape).items() if queue == shape.names[other])
    name = {"queue": shape.names[other], "channel": f"{host}:5000 -> 10.0.0.1:5672 (1)"}
    cause = AffectedObject("queue", "shop", shape.names[0], "acked")
    incident = Incident(
        "x", "c", BEGAN.isoformat(), BEGAN.isoformat(), "", slope=False, everywhere=False, causes=[cause]
    )
    moved = ChangePoint(
        BEGAN.timestamp(), kind, "shop", name.get(kind, f"{shape.names[other]}/ctag"), "acked", 9.0, 0.0, 9.0, 60
    )

    assert (other == 0) == explains(incident, moved, hosts_of(shape))


def test_a_queue_and_its_channels_are_one_false_change():
    """Within a quarter of an hour; what comes later is another one."""

    def moved(minute, kind, name, queue=None):
        return ChangePoint(BEGAN.timestamp() + 60 * minute, kind, "/", name, "unacked", 0.0, 9.0, 9.0, 60, queue)

    together = [moved(0, "queue", "orders"), moved(3, "channel", "a", "orders"), moved(9, "channel", "b", "orders")]

    assert together[:1] == objects(together)
    assert 2 == len(objects([*together, moved(40, "channel", "a", "orders")]))
    assert 2 == len(objects([*together, moved(3, "channel", "c")]))


def test_what_is_reported_depends_on_when_it_is_asked():
    """The quick look tells a quarter of an hour after a shift, the patient one after fifty minutes, both the same."""
    row = {
        "at": BEGAN,
        "kind": "queue",
        "vhost": "/",
        "name": "orders",
        "measure": "acked",
        "before": 9.0,
        "after": 0.0,
    }
    rows = [row | {"score": 20.0, "minutes": 90, "sure": True, "back": False, "soon": soon} for soon in (True, False)]
    candidates = pa.Table.from_pylist(rows, schema=arrow_schema(CANDIDATES))
    patient = candidates.slice(1)

    assert [0, 1, 1] == [len(reported(candidates, BEGAN.timestamp() + 60 * it)) for it in (10, 15, 60)]
    assert [0, 0, 1] == [len(reported(patient, BEGAN.timestamp() + 60 * it)) for it in (10, 15, 60)]
