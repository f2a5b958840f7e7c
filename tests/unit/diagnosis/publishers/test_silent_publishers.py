"""Which publishers without confirms a full queue may refuse, by the balance of rates."""

from dataclasses import replace

import pytest

from ackscope.second_source import ChannelPublishes, ExchangePublishes
from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings, Exchange
from tests.unit.diagnosis.pictures import channel, connection, film, look, moment, queue, stats, text
from tests.unit.diagnosis.publishers.films import findings

NODE = "rabbit@a"
FULL = {"x-max-length": 20, "x-overflow": "reject-publish"}


def address(place):
    """The connection of the client with this number."""
    return f"10.0.0.{place + 1}:50000 -> 10.0.0.1:5672"


def scene(t, clients, others=None, full="invoices.in"):
    """A full queue that gets what the clients of a map name -> (rate, queue) send to it, and other queues.

    The rates of `others` are those of further queues, whatever fills them.
    """
    rates = {full: 0.0, **(others or {})}
    for rate, place in clients.values():
        if place is not None:
            rates[place] = rates.get(place, 0.0) + rate
    gets = lambda name: stats(publish=int(10 + rates[name] * t), ack=0 if name == full else int(rates[name] * t))  # noqa: E731
    return {
        "queues": tuple(
            queue(name, messages_ready=20, messages=20, arguments=FULL, stats=gets(name))
            if name == full
            else queue(name, messages_ready=0, messages=0, consumers=1, stats=gets(name))
            for name in rates
        ),
        "channels": tuple(
            channel(
                f"{address(place)} (1)",
                confirm=False,
                consumer_count=0,
                messages_unconfirmed=0,
                stats=stats(publish=int(10 + 500 * place + rate * t)),
            )
            for place, (name, (rate, _)) in enumerate(clients.items())
        ),
        "connections": tuple(connection(address(place), client_name=name) for place, name in enumerate(clients)),
    }


def named(frame, until=30, rule="pub-nacked-overflow"):
    """The clients that the finding names, and whether it says that only some of them are meant."""
    (finding,) = findings(look(film(frame, until=until)), rule)
    return finding.facts["clients_without_confirms"], finding.facts["one_without_confirms"]


@pytest.mark.parametrize(("own", "others"), [(15.0, (1.0, 2.0)), (60.0, (8.0, 40.0)), (3.0, (1.0, 0.5))])
def test_the_one_client_that_publishes_as_much_as_the_queue_gets_is_named(own, others):
    """Others publish less, to queues of their own or to several."""
    clients = {"scanner": (own, "invoices.in"), "rates-cli": (others[0], "rates"), "mail": (others[1], None)}

    assert (["scanner"], False) == named(lambda t: scene(t, clients))


def test_clients_whose_rates_add_up_are_all_named():
    """No one publishes as much alone; a stranger's messages arrive in its own queue."""
    clients = {"till-1": (6.0, "invoices.in"), "till-2": (9.0, "invoices.in"), "weather": (2.0, "weather")}

    assert (["till-1", "till-2"], False) == named(lambda t: scene(t, clients))


def test_of_several_that_fit_one_or_more_is_meant():
    """Two clients publish as much as the queue gets, and nothing else shows where their messages go."""
    clients = {"till": (12.0, "invoices.in"), "kiosk": (12.0, None)}
    frame = lambda t: scene(t, clients)  # noqa: E731
    (finding,) = findings(look(film(frame, until=30)), "pub-nacked-overflow")

    assert (["kiosk", "till"], True) == named(frame)
    assert "one or more of 'kiosk', 'till' publish without confirms" in text(finding).summary
    assert ((), 2) == (finding.involved.clients, len(finding.involved.one_of))


def test_a_client_that_fits_two_queues_may_publish_to_either():
    """Both queues get the same: either from the one client, or from the two others together."""
    clients = {"till-1": (6.0, "invoices.in"), "till-2": (6.0, "invoices.in"), "kiosk": (12.0, "tickets")}

    assert (["kiosk", "till-1", "till-2"], True) == named(lambda t: scene(t, clients))


def test_messages_that_an_exchange_with_other_queues_gets_are_those_of_its_publisher():
    """A topic exchange spreads them over several queues, and no queue gets as many."""
    clients = {"till-1": (6.0, "invoices.in"), "till-2": (8.0, "invoices.in"), "events": (2.5, None)}

    def frame(t):
        events = Exchange(
            name="facts",
            vhost="/",
            type="topic",
            durable=True,
            stats=stats(publish_in=int(2.5 * t), publish_out=int(2.5 * t)),
        )
        bound = Binding(vhost="/", source="facts", destination="facts.a", destination_type="queue", routing_key="a.#")
        return {
            **scene(t, clients, others={"facts.a": 1.0, "facts.b": 1.5}),
            "exchanges": (events,),
            "bindings": Bindings(listed=(bound,)),
        }

    assert (["till-1", "till-2"], False) == named(frame)


@pytest.mark.parametrize(("counted", "expected"), [(False, (["kiosk", "till"], True)), (True, (["till"], False))])
def test_the_endpoints_say_which_of_two_publishes_to_another_exchange(counted, expected):
    """Both publish at nearly the same rate; nothing leads from the exchange of one to the full queue."""
    clients = {"till": (12.0, "invoices.in"), "kiosk": (11.6, None)}
    exchanges = tuple(Exchange(name=name, vhost="/", type="topic", durable=True) for name in ("", "facts"))

    def rows(t):
        for number, each in enumerate(scene(t, clients)["channels"]):
            yield ChannelPublishes(
                node=NODE, process=f"<0.{number}.0>", vhost="/", exchange=("", "facts")[number],
                published=each.stats.publish, confirmed=0, returned=0, dropped=0,
            )  # fmt: skip

    def frame(t):
        at = t - t % 10 + 0.5
        read = ExchangePublishes(nodes=(NODE,), unread={}, seconds=0.1, channels=tuple(rows(at)))
        made = {**scene(t, clients), "exchanges": exchanges, "bindings": Bindings(listed=())}
        # Channels report what they counted some seconds ago.
        made["channels"] = tuple(replace(each, node=NODE) for each in scene(max(0.0, t - 3), clients)["channels"])
        return {**made, "exchange_publishes": Part(value=read, at=moment(at), seconds=0.1)} if counted else made

    assert expected == named(frame, until=60)
