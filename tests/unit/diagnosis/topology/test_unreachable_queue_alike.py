"""One of several queues alike is bound to nothing, while the others get the messages of an exchange."""

import pytest

from ackscope.findings import flat
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text

RULE = "unreachable-queue"


def fleet(
    t,
    *,
    names=("cache.pod-1", "cache.pod-2", "cache.pod-3"),
    clients=("cache-pod-1", "cache-pod-2", "cache-pod-3"),
    unbound=1,
    rate=4.0,
    named=0,
    since=-900.0,
    silent=False,
    dead_letters=False,
):
    """A queue for each instance of an application; the last ones are not bound.

    Args:
        t: second of the film.
        names: of the queues.
        clients: of their consumers.
        unbound: number of queues without a binding.
        rate: messages a second of the exchange.
        named: messages that came to the queues without a binding by their names.
        since: second at which the clients connected.
        silent: whether the bound queues never got a message.
        dead_letters: whether another queue dead-letters to the last one.
    """
    n = 0 if silent else 100 + int(rate * t)
    peers = [f"10.0.1.{number}:6000 -> 10.0.0.1:5672" for number in range(len(names))]
    bound = names[: len(names) - unbound]
    more = {"dead-letter-exchange": "", "dead-letter-routing-key": names[-1]} if dead_letters else {}
    work = queue("orders", consumers=1, arguments={f"x-{key}": value for key, value in more.items()})
    return {
        "queues": (
            work,
            *(queue(name, consumers=1, stats=stats(publish=(n if name in bound else named) or None)) for name in names),
        ),
        "bindings": Bindings(
            listed=tuple(
                Binding(vhost="/", source="invalidate", destination=name, destination_type="queue") for name in bound
            )
        ),
        "exchanges": (Exchange(vhost="/", name="invalidate", type="fanout", stats=stats(publish_in=100 + int(4 * t))),),
        "consumers": tuple(
            consumer(name, connection_name=peer, channel_name=f"{peer} (1)")
            for name, peer in zip(names, peers, strict=True)
        ),
        "connections": tuple(
            connection(peer, client_name=client, connected_at=WALL + since)
            for client, peer in zip(clients, peers, strict=True)
        ),
        "channels": tuple(channel(f"{peer} (1)", connection_name=peer, stats=stats()) for peer in peers),
    }


def reported(until=70, thresholds=None, **options):
    """The finding; None without one."""
    window = film(lambda t: fleet(t, **options), until=until)
    return next((each for each in flat(look(window, thresholds=thresholds).findings) if each.rule == RULE), None)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rate": 0.5},
        {"names": ("ws.eu1.push", "ws.eu2.push", "ws.eu3.push", "ws.eu4.push"), "clients": ("push",) * 4},
    ],
    ids=["numbers", "seldom", "one name of all clients"],
)
def test_the_only_one_of_several_queues_without_a_binding(options):
    """Nothing else shows what it should get."""
    finding = reported(**options)
    name = options.get("names", ("cache.pod-3",))[-1]

    assert ("warning", name) == (finding.severity, finding.subject.name)
    assert ["invalidate"] == finding.facts["others_bound"]
    assert "named alike" in text(finding).cause
    assert "The broker chose the name" not in text(finding).cause


def test_one_look_shows_it():
    """No earlier binding is known then."""
    assert "warning" == reported(until=10, thresholds=Thresholds.brief()).severity


@pytest.mark.parametrize(
    "options",
    [
        {"unbound": 2},
        {"unbound": 0},
        {"unbound": 3},
        {"named": 3},
        {"silent": True},
        {"dead_letters": True},
        {"names": ("cache.pod-1", "cache.pod-2"), "clients": ("cache-pod-1", "cache-pod-2")},
        {"names": ("cache.north", "cache.south", "cache.reply")},
        {"clients": ("cache-pod-1", "cache-pod-2", "inspector")},
        {"clients": (None, None, None)},
    ],
    ids=[
        "several are not bound",
        "all are bound",
        "none is bound",
        "it gets messages by its name",
        "nobody gets messages",
        "it gets dead letters",
        "only two",
        "other names",
        "another application",
        "clients without a name",
    ],
)
def test_queues_without_a_binding_that_look_alike(options):
    """They may get their messages in another way."""
    assert reported(**options) is None


@pytest.mark.parametrize(("until", "severity"), [(10, None), (40, "info")])
def test_a_deployment_has_time_to_bind_its_queue(until, severity):
    """It declares and binds after it connected."""
    finding = reported(until=until, since=0.0)

    assert severity == (finding.severity.value if finding else None)
