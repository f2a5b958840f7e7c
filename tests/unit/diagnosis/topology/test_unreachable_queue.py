import pytest

from ackscope.findings import flat
from ackscope.topology import Binding, Bindings, Exchange
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text

RULE = "unreachable-queue"
OLD, NEW, OTHER = "amq.gen-a1", "amq.gen-b2", "amq.gen-c3"


def quotes(
    t,
    *,
    lost=30.0,
    name=NEW,
    client="trading-desk",
    bound=False,
    sends=None,
    got=None,
    goes_on=True,
    sibling=False,
    first=True,
):
    """A fan-out whose subscriber loses its connection, and consumes from a new queue since."""
    again = t >= lost
    here = name if again else OLD
    peer = f"10.0.0.8:{5000 + again} -> 10.0.0.1:5672"
    queues = [
        queue("archive", consumers=1),
        queue(here, exclusive=True, consumers=1, stats=stats(publish=got if again else 5)),
    ]
    listed = [Binding(vhost="/", source="quotes", destination="archive", destination_type="queue")]
    consumers = [consumer(here, connection_name=peer, channel_name=f"{peer} (1)")]
    connections = [connection(peer, client_name=client, connected_at=WALL + (lost if again else -900))]
    channels = [channel(f"{peer} (1)", connection_name=peer, stats=stats(publish=sends))]
    if (first and not again) or (again and bound):
        listed.append(Binding(vhost="/", source="quotes", destination=here, destination_type="queue"))
    if sibling:
        peer = "10.0.0.9:6000 -> 10.0.0.1:5672"
        queues.append(queue(OTHER, exclusive=True, consumers=1, stats=stats(publish=int(3 * t) + 1)))
        listed.append(Binding(vhost="/", source="quotes", destination=OTHER, destination_type="queue"))
        consumers.append(consumer(OTHER, connection_name=peer, channel_name=f"{peer} (1)"))
        connections.append(connection(peer, client_name=client, connected_at=WALL - 900))
        channels.append(channel(f"{peer} (1)", connection_name=peer, stats=stats()))
    received = int(6 * (t if goes_on else min(t, lost)))
    return {
        "queues": tuple(queues),
        "bindings": Bindings(listed=tuple(listed)),
        "exchanges": (Exchange(vhost="/", name="quotes", type="fanout", stats=stats(publish_in=received)),),
        "consumers": tuple(consumers),
        "connections": tuple(connections),
        "channels": tuple(channels),
    }


def reported(until=100, **options):
    """The finding; None without one."""
    result = look(film(lambda t: quotes(t, **options), until=until))
    return next((each for each in flat(result.findings) if each.rule == RULE), None)


def test_a_subscriber_that_came_back_without_its_binding_is_a_warning():
    """Its former queue was bound, and the exchange goes on; information at first."""
    early, late = reported(until=70), reported()

    assert ("info", "warning") == (early.severity.value, late.severity.value)
    assert (["quotes"], [], ["quotes"]) == tuple(late.facts[key] for key in ("was_bound", "others_bound", "exchanges"))
    assert "'trading-desk' gets no messages" in text(late).summary
    assert "its former queue had one to exchange 'quotes'" in text(late).summary
    assert any("Restart 'trading-desk'" in step.text for step in text(late).steps)


def test_a_bound_queue_of_another_instance_shows_it_as_well():
    """One look knows nothing of before."""
    finding = reported(lost=-200.0, sibling=True)

    assert ("warning", ["quotes"]) == (finding.severity.value, finding.facts["others_bound"])


def test_without_another_binding_it_is_information():
    """The client may have told the name in another way."""
    finding = reported(lost=-200.0)

    assert ("info", []) == (finding.severity.value, finding.facts["exchanges"])
    assert "harmless if the client told its name to somebody" in text(finding).summary


@pytest.mark.parametrize(
    "options",
    [
        {"bound": True},
        {"sends": 4},
        {"got": 1},
        {"name": "desk.updates"},
        {"client": None},
        {"lost": 92.0},
    ],
    ids=["bound", "publishes", "gets messages", "named", "unknown client", "new"],
)
def test_what_can_be_reached(options):
    """Or may be."""
    assert reported(**options) is None


def test_an_exchange_that_gets_nothing_either_is_no_loss():
    """Nothing is missed there."""
    assert "info" == reported(goes_on=False, lost=-200.0, sibling=True).severity.value
