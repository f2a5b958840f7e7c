"""Generated history: reproducible, in the form of the contract, and with known incidents."""

from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest

from ackscope.tables import LANDING, MINUTES
from ackscope.tables.arrow import arrow_schema
from bench.pipeline import incident_plan
from bench.pipeline.fleet import START, Fleet
from bench.pipeline.incident_plan import LENGTHS, Planned
from bench.pipeline.landed import LandingRows
from bench.pipeline.simulation import Simulation
from tests.spark import golden_samples


@pytest.fixture
def small():
    """Generate one day of a few queues."""
    return lambda seed=5: Fleet("small", seed=seed, queues=30, days=1, incidents=2)


def test_the_same_seed_gives_the_same_history(small):
    """All random numbers follow from the seed; another seed gives another history."""
    one, two, other = (next(iter(small(seed).minutes()))[1]["queues_1m"] for seed in (5, 5, 6))

    assert one.equals(two)
    assert not one.equals(other)


@pytest.mark.parametrize(("walk", "tables"), [("minutes", MINUTES), ("landing", LANDING)])
def test_rows_are_in_the_form_of_the_contract(small, walk, tables):
    """Schema and key of every table are those that are declared."""
    fleet = small()

    _, rows = next(iter(getattr(fleet, walk)()))

    assert len(rows) >= 6
    for name, found in rows.items():
        assert arrow_schema(tables[name]) == found.schema
        keys = found.select(list(tables[name].key))
        if walk == "minutes":
            assert keys.num_rows == keys.group_by(keys.column_names).aggregate([]).num_rows


def test_landed_changes_tell_exactly_what_happened():
    """Rolled up by the plain computation that the pipeline's tests use, increases add up to what was simulated."""
    shape = Fleet("small", seed=4, queues=25, days=1, incidents=0).shape
    landed, dice = LandingRows(shape), np.random.default_rng(1)
    motion = Simulation(shape, (), np.random.default_rng(9), START, 1440).stretches(60)
    samples, polls, published = [], [], np.zeros(len(shape), dtype=int)

    for stretch in islice(motion, 2):
        rows = landed.rows(dice, stretch)
        samples += rows["queue_samples"].to_pylist()
        polls += rows["poll_samples"].to_pylist()
        # Nothing is known of what was before the first poll.
        published += np.where(stretch.there, stretch.published, 0)[0 if published.any() else 1 :].sum(axis=0)
    found = Counter()
    for row in golden_samples.queues_1m(samples, polls):
        found[row["queue"]] += row["published"] or 0

    assert len(samples) < 120 * len(shape)
    assert published.sum() > 10_000
    assert {name: count for name, count in zip(shape.names, published.tolist(), strict=True) if count} == +found


def test_the_truth_names_cause_and_time(small):
    """Every planted incident has a cause that is an object of the cluster, and an order of times."""
    fleet = small()
    for _ in fleet.minutes():
        pass

    truth = fleet.truth()

    assert 2 == len(truth)
    for it in truth:
        assert it.began < it.ended <= (it.settled or it.ended)
        assert it.causes
        for cause in it.causes:
            assert cause.kind != "queue" or cause.name in fleet.shape.names


def test_every_kind_comes_before_one_comes_again():
    """Twelve incidents are of twelve different kinds."""
    plan = Fleet("month", seed=3).plan

    assert set(LENGTHS) == {it.kind for it in plan}
    assert all(one.ended < two.began for one, two in pairwise(plan))


@pytest.mark.parametrize(
    ("kind", "array", "least", "most"),
    [
        (incident_plan.CONSUMER_STOPS, "acked", 0.0, 0.0),
        (incident_plan.CONSUMER_SLOWS, "acked", 0.0, 0.8),
        (incident_plan.PUBLISHER_BURST, "published", 2.0, 20.0),
        (incident_plan.DEPLOY_HALVES, "acked", 0.2, 0.8),
        (incident_plan.MEMORY_ALARM, "published", 0.0, 0.0),
    ],
)
def test_an_incident_does_what_its_name_says(kind, array, least, most):
    """The expected measure moves from the start minute on (for an alarm: once memory is full)."""
    fleet = Fleet("small", seed=8, queues=40, days=1, incidents=0)
    shape = fleet.shape
    chosen = np.flatnonzero((shape.rate > 3) & (shape.nightly < 0) & (shape.born < 0) & (shape.removed > 1440))
    queue = int(chosen[0])
    planned = Planned(kind, 700, 760, -1 if kind == incident_plan.MEMORY_ALARM else queue, 0, 0.5)
    motion = Simulation(shape, (planned,), np.random.default_rng(1), fleet.start, 1440)

    day = next(iter(motion.stretches(1440)))

    values = getattr(day, array)[:, queue]
    before, during = values[640:700].mean(), values[715:760].mean()
    assert least <= during / before <= most
