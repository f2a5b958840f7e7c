"""Exchanges whose losses the Prometheus endpoints count by channel and exchange."""

import pytest

from ackscope.second_source import ChannelPublishes, ExchangePublishes
from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings
from diagnosis.exchange_publishes import channels_by_process, exchange_gains
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.pictures import NODE, WALL, channel, film, full_text, look, snapshot, stats
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of, shop

DROPPED, RETURNED = "pub-unroutable-dropped", "pub-unroutable-returned"
COUNTERS = {DROPPED: ("drop_unroutable", "dropped"), RETURNED: ("return_unroutable", "returned")}
LATE = 3.0
"""Seconds by which the management API is behind the endpoints."""


def peer(number):
    """The name of a connection."""
    return f"10.0.0.{number}:5{number:04} -> 10.0.0.1:5672"


class Sender:
    """A client: its exchange (or several), its rates, and what it published before the film."""

    def __init__(self, number, client, places, *, before=0, rule=DROPPED, node=NODE, listed=True):
        self.number, self.client, self.before, self.rule, self.node = number, client, before, rule, node
        self.places, self.listed = places, listed

    def sent(self, t, rate):
        """Messages until then, at this rate."""
        return int(self.before + rate * max(0.0, t))

    def rows(self, t):
        """What the endpoint of its node says."""
        return [
            ChannelPublishes(
                node=self.node,
                process=f"<0.{self.number}.0>",
                vhost="/",
                exchange=name,
                published=self.sent(t, rate),
                confirmed=0,
                **{"returned": 0, "dropped": 0, COUNTERS[self.rule][1]: self.sent(t, rate)},
            )
            for name, rate in self.places.items()
        ]

    def channel(self, t):
        """What the management API says."""
        number = sum(self.sent(t - LATE, rate) for rate in self.places.values())
        counters = {"publish": number, COUNTERS[self.rule][0]: number} if number else {}
        return channel(f"{peer(self.number)} (1)", node=self.node, stats=stats(**counters), consumer_count=0)


def frame_of(*senders, counted=10, unread=None, omitted=0, kind="direct", extra=()):
    """Frames in which senders publish to exchanges that lose all; the endpoints are read every `counted` seconds."""

    def frame(t):
        names = sorted({name for each in senders for name in each.places})
        read, lists = t - t % 15, []
        for name in names:
            received = sum(each.sent(read, each.places[name]) for each in senders if name in each.places)
            lists.append(exchange(name, received=received, routed=0, type=kind))
        parts = {
            "channels": tuple(each.channel(t) for each in senders if each.listed),
            "connections": tuple(
                shop(peer(each.number), client_name=each.client, connected_at=WALL - 1) for each in senders
            ),
            "exchanges": Part(value=(*lists, *extra), at=snapshot(read).taken, seconds=0.1),
        }
        if counted:
            at = t - t % counted + 0.5
            value = ExchangePublishes(
                nodes=tuple(sorted({each.node for each in senders})),
                unread=unread or {},
                seconds=0.1,
                channels=tuple(row for each in senders for row in each.rows(at)),
                omitted=omitted,
            )
            parts["exchange_publishes"] = Part(value=value, at=snapshot(at).taken, seconds=0.1)
        return parts

    return frame


def view_of(frame, until=60.0):
    """The view of a film."""
    window = film(frame, until=until)
    return View(window, (), window.latest.taken, Thresholds())


def owners(verdict, rule):
    """The clients of each exchange that a finding names."""
    return {each.subject.name: each.facts["clients"] for each in findings(verdict, rule)}


@pytest.mark.parametrize("rule", [DROPPED, RETURNED])
@pytest.mark.parametrize("names", [("arrivals", "departures"), ("z", "a"), ("q.1", 'q"2')])
def test_two_exchanges_that_lose_alike_name_their_own_publishers(rule, names):
    """Rates do not tell them apart, and what each channel published does."""
    heron = Sender(1, "heron", {names[0]: 10.0}, before=900, rule=rule)
    egret = Sender(2, "egret", {names[1]: 10.0}, rule=rule)

    assert {names[0]: ["heron"], names[1]: ["egret"]} == owners(look(film(frame_of(heron, egret), until=90)), rule)


def test_the_evidence_names_its_source():
    """Metric, endpoint, number and time."""
    verdict = look(film(frame_of(Sender(1, "heron", {"arrivals": 10.0}, before=900)), until=90))
    (finding,) = findings(verdict, DROPPED)

    assert 10.0 == finding.facts["lost_rate"]
    assert "rabbitmq_detailed_channel_messages_unroutable_dropped_total" in full_text(finding)
    assert "100 messages in 10 s" in full_text(finding)


def test_one_publisher_loses_different_numbers_at_three_exchanges():
    """Each has its own rate, and the publisher loses there what it loses there."""
    verdict = look(film(frame_of(Sender(1, "heron", {"a": 12.0, "b": 5.0, "c": 1.0}, before=300)), until=90))

    rates = {each.subject.name: round(each.facts["lost_rate"]) for each in findings(verdict, DROPPED)}
    assert {"a": 12, "b": 5, "c": 1} == rates
    assert {"a": ["heron"], "b": ["heron"], "c": ["heron"]} == owners(verdict, DROPPED)


def test_three_publishers_share_two_exchanges():
    """Sums of rates would fit several assignments."""
    senders = (
        Sender(1, "heron", {"a": 6.0}, before=500),
        Sender(2, "egret", {"a": 4.0}, before=2000),
        Sender(3, "stork", {"b": 10.0}),
    )

    assert {"a": ["egret", "heron"], "b": ["stork"]} == owners(look(film(frame_of(*senders), until=90)), DROPPED)


def hidden_by_copies(sender, *others, copied=40.0):
    """Frames in which an exchange hands two copies of other messages to queues, so it routes more than it receives."""
    (name,) = sender.places

    def frame(t):
        found = frame_of(sender, *others)(t)
        read = t - t % 15
        received, routed = int(sender.sent(read, sender.places[name]) + copied * read), int(2 * copied * read)
        part = found["exchanges"]
        crowd = exchange(name, received=received, routed=routed, type="direct")
        rest = tuple(each for each in part.value if each.name != name)
        both = tuple(
            Binding(vhost="/", source=name, destination=queue, destination_type="queue", routing_key="other")
            for queue in ("one", "two")
        )
        return {
            **found,
            "exchanges": Part(value=(crowd, *rest), at=part.at, seconds=0.1),
            "bindings": Bindings(listed=both),
        }

    return frame


def test_what_copies_hide_is_counted():
    """An exchange that hands two copies of other messages to queues routes more than it receives."""
    frame = hidden_by_copies(Sender(1, "heron", {"a": 10.0}, before=900))

    verdict = look(film(frame, until=90))

    assert {"a": ["heron"]} == owners(verdict, DROPPED)
    assert (10.0, "partly") == (facts(verdict, DROPPED)["lost_rate"], facts(verdict, DROPPED)["routing"])


@pytest.mark.parametrize(("rate", "others"), [(10.0, [12.0]), (4.0, [12.0, 9.0, 7.0]), (0.7, [1.1])])
def test_a_loss_that_copies_hide_lasts_as_long_as_its_publisher_counts(rate, others):
    """Readings of channels go back half a minute; what it lost before tells for how long it has lost messages."""
    senders = [Sender(number, f"egret-{number}", {f"z{number}": each}) for number, each in enumerate(others, start=2)]
    frame = hidden_by_copies(Sender(1, "heron", {"a": rate}), *senders)

    (finding,) = [each for each in findings(look(film(frame, until=240)), DROPPED) if each.subject.name == "a"]

    assert finding.severity != "info"
    assert 180 <= finding.seen_seconds <= 260


def test_a_publisher_that_loses_at_two_exchanges_has_not_lost_for_longer():
    """Its counter has what it lost at both."""
    frame = frame_of(Sender(1, "heron", {"a": 1.0, "b": 9.0}), Sender(2, "egret", {"c": 3.0}))

    seen = {each.subject.name: each.seen_seconds for each in findings(look(film(frame, until=150)), DROPPED)}

    assert {"a", "b", "c"} == set(seen)
    assert max(seen.values()) <= 155


def test_a_process_is_joined_to_the_only_channel_that_it_fits():
    """Of its node, with counters in between."""
    view = view_of(frame_of(Sender(1, "heron", {"a": 10.0}, before=900), Sender(2, "egret", {"b": 10.0})))

    assert {(NODE, "<0.1.0>"): f"{peer(1)} (1)", (NODE, "<0.2.0>"): f"{peer(2)} (1)"} == channels_by_process(view)


def test_twins_are_not_joined():
    """Either may be either."""
    twins = frame_of(Sender(1, "heron", {"a": 10.0}), Sender(2, "egret", {"b": 10.0}))

    assert {} == channels_by_process(view_of(twins))
    assert {"a", "b"} == {name for _, _, name in of(look(film(twins, until=90)), DROPPED)}


def test_twins_on_two_nodes_are_joined():
    """The endpoint of each node tells its own channels only."""
    twins = (Sender(1, "heron", {"a": 10.0}), Sender(2, "egret", {"b": 10.0}, node="rabbit@other"))

    assert {"a": ["heron"], "b": ["egret"]} == owners(look(film(frame_of(*twins), until=90)), DROPPED)


def test_a_process_whose_channel_is_not_listed_takes_no_other():
    """It fits the channel of another process, which fits as well."""
    hidden, shown = Sender(1, "heron", {"a": 10.0}, listed=False), Sender(2, "egret", {"b": 10.0})

    assert {} == channels_by_process(view_of(frame_of(hidden, shown)))


def test_channels_that_are_omitted_may_fit_as_well():
    """If even some of those that lose messages are not listed, nothing is joined."""
    assert {} == channels_by_process(view_of(frame_of(Sender(1, "heron", {"a": 10.0}), omitted=5)))


def test_without_a_node_nothing_is_summed():
    """Absent is not zero: what that node counts is unknown, and rates decide as before."""
    senders = (Sender(1, "heron", {"a": 10.0}, before=900), Sender(2, "egret", {"b": 3.0}))
    partial = frame_of(*senders, unread={"rabbit@other": "refused"})

    assert exchange_gains(view_of(partial)) is None
    verdict = look(film(partial, until=90))
    assert {"a": ["heron"], "b": ["egret"]} == owners(verdict, DROPPED)
    assert not [item for each in findings(verdict, DROPPED) for item in each.evidence if item.key == "exchange_lost"]


def test_one_reading_has_no_rate():
    """And an old one is not used."""
    sender = Sender(1, "heron", {"a": 10.0})

    assert exchange_gains(view_of(frame_of(sender, counted=1000))) is None
    assert exchange_gains(view_of(frame_of(sender, counted=None))) is None


def test_a_process_number_that_is_used_again_counts_from_zero():
    """After a restart of its node."""
    old, new = Sender(1, "heron", {"a": 10.0}, before=900), Sender(1, "heron", {"a": 10.0})

    gains = exchange_gains(view_of(lambda t: frame_of(old if t < 60 else new)(t)))

    assert 605 == gains[("/", "a")].total("drop_unroutable")
