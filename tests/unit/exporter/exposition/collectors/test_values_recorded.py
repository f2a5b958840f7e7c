"""Series of recorded brokers have the value of the field that the metric names."""

import pytest

from ackscope.clock import Instant
from ackscope.snapshot import Part, Snapshot
from exporter.broker.families import FAMILIES
from exporter.exposition.cardinality.top_k import select_all
from exporter.exposition.collectors import channels, connections, consumer_each, exchanges, queues
from tests.unit.exporter.broker.server import VERSIONS, fixture

SHAPES = ("", "backlog", "one-down", "linked")
MODULES = {
    "queues": (queues, ("vhost", "name"), ("vhost", "queue")),
    "channels": (channels, ("name",), ("channel",)),
    "connections": (connections, ("name",), ("connection",)),
    "consumers": (
        consumer_each,
        ("queue.vhost", "queue.name", "consumer_tag", "channel_details.name"),
        ("vhost", "queue", "consumer_tag", "channel"),
    ),
    "exchanges": (exchanges, ("vhost", "name"), ("vhost", "exchange")),
}
CLASSIC = {"consumer_capacity", "consumer_utilisation"}
"""Fields that mean nothing for quorum queues and streams, though brokers fill them."""


def at(payload, path):
    """The value at a path such as message_stats.publish; None if it is not there."""
    for name in path.split("."):
        if not isinstance(payload, dict):
            return None
        payload = payload.get(name)
    return payload


def exported(family, version, shape):
    """Metric -> the object's own labels -> value."""
    major, minor, _ = map(int, version.split("."))
    objects, _ = FAMILIES[family].decode(fixture(version, family, shape), (major, minor))
    snapshot = Snapshot(cluster="shop", taken=Instant(0.0, 0.0), **{family: Part(value=objects)})
    module, _, labels = MODULES[family]
    return {
        metric.sample_name: {
            tuple(sample.labels[name] for name in labels): sample.value
            for sample in metric.samples
            if set(labels) <= set(sample.labels)
        }
        for metric in module.collect([snapshot], select_all([snapshot]))
    }


def requested(family, version, shape):
    """Yield (metric, field, the object's own labels, value of the broker, value of the series)."""
    module, key, _ = MODULES[family]
    seen = exported(family, version, shape)
    for spec in module.SPECS:
        field = spec.source.removeprefix(f"/api/{family} ")
        if "," in field or " " in field or field.startswith("/"):
            continue
        for payload in fixture(version, family, shape):
            name = tuple(at(payload, path) for path in key)
            described = None if field in CLASSIC and payload["type"] != "classic" else at(payload, field)
            yield spec.name, field, name, described, seen.get(spec.name, {}).get(name)


MILLISECONDS = {"connected_at", "consumer_timeout"}


def plain(field, described):
    """Return the broker's value as a number: the length of a list, milliseconds as seconds."""
    match described:
        case list():
            return len(described)
        case bool():
            return int(described)
        case _:
            return described / 1000 if field in MILLISECONDS and described is not None else described


@pytest.mark.parametrize("family", MODULES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_series_says_what_the_field_that_it_names_says(version, shape, family):
    """Number for number; what the broker did not say is absent."""
    rows = [row for row in requested(family, version, shape) if not isinstance(row[3], str)]
    wrong = [row for row in rows if plain(row[1], row[3]) != row[4]]

    assert [] == wrong
    assert any(row[4] is not None for row in rows)
