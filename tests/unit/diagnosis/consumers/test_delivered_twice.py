import pytest

from ackscope.topology import Binding, Bindings
from tests.unit.diagnosis.pictures import PEER, channel, connection, consumer, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import findings

RULE = "delivered-twice"


def bound_twice(
    t, *, names=("celery", "default"), keys=("celery", "celery"), rates=(5.0, 5.0), channels=(1, 1), of=None
):
    """Two queues of one exchange, each with its key and its messages a second, consumed on these channels."""
    counters = [int(40 + rate * t) for rate in rates]
    return {
        "queues": tuple(
            queue(name, vhost="vh", stats=stats(publish=number, deliver=number, ack=number), **(of or {}).get(name, {}))
            for name, number in zip(names, counters, strict=True)
        ),
        "bindings": Bindings(
            listed=tuple(
                Binding(vhost="vh", source="tasks", destination=name, destination_type="queue", routing_key=key)
                for name, key in zip(names, keys, strict=True)
            )
        ),
        "consumers": tuple(
            consumer(name, vhost="vh", tag=name, channel_name=f"{PEER} ({number})")
            for name, number in zip(names, channels, strict=True)
        ),
        "channels": tuple(channel(f"{PEER} ({number})", vhost="vh") for number in sorted(set(channels))),
        "connections": (connection(vhost="vh", client_name="worker"),),
    }


@pytest.mark.parametrize(
    "fields",
    [{}, {"names": ("a", "q-2"), "keys": ("#", "#"), "rates": (80.0, 80.0)}, {"rates": (0.7, 0.7)}],
    ids=["celery", "other names", "slow"],
)
def test_a_worker_that_gets_each_message_from_two_queues_is_information(fields):
    """With both queues, and the binding that they have in common."""
    (finding,) = findings(look(film(lambda t: bound_twice(t, **fields), until=60)), RULE)

    assert ("info", ["worker"]) == (finding.severity, finding.facts["clients"])
    assert fields.get("names", ("celery", "default")) == tuple(each.name for each in finding.involved.queues)
    assert "each message twice" in text(finding).summary


@pytest.mark.parametrize(
    "fields",
    [
        {"channels": (1, 2)},
        {"keys": ("celery", "mail")},
        {"rates": (5.0, 4.0)},
        {"rates": (0.1, 0.1)},
        {"of": {"default": {"arguments": {"x-max-length": 5}}}},
    ],
    ids=["two applications", "other keys", "other messages", "few", "other settings"],
)
def test_what_only_resembles_it_is_not_reported(fields):
    """Each differs in one thing."""
    assert [] == findings(look(film(lambda t: bound_twice(t, **fields), until=60)), RULE)
