import pytest

from ackscope.counters import MessageStats
from ackscope.snapshot import Part
from ackscope.topology import VHost
from tests.unit.diagnosis.pictures import film, look, moment, text
from tests.unit.diagnosis.publishers.films import exchange, of, publisher, shop

RULE = "pub-unroutable-unlisted"


def dropping(t, *, rate=4.0, listed=0.0, kind="direct", routed=0.0, name="orders.in", vhost="/", lives=1e9, **own):
    """A virtual host that drops so many messages a second; a listed channel drops some of them."""
    total, theirs = int(50 + (rate + listed * (t < lives)) * t), int(30 + listed * t)
    here = exchange(
        name, type=kind, received=int((rate + listed + routed) * t), routed=int(routed * t), vhost=vhost, **own
    )
    dropper = publisher(t, rate=listed, confirm=False, vhost=vhost, counters={"drop_unroutable": theirs})
    return {
        "vhosts": (VHost(name=vhost, stats=MessageStats(publish=1000, drop_unroutable=total)),),
        "exchanges": (here,),
        "channels": (dropper,) if listed and t < lives else (),
        "connections": (shop(vhost=vhost),) if listed and t < lives else (),
    }


def said(until=40, every=5.0, **fields):
    """Severity and subject of the findings of this rule."""
    return of(look(film(lambda t: dropping(t, **fields), until=until, every=every)), RULE)


@pytest.mark.parametrize(("name", "vhost", "rate"), [("orders.in", "/", 4.0), ("", "eu", 60.0), ("x", "a/b", 0.5)])
def test_what_no_listed_channel_dropped_is_reported(name, vhost, rate):
    """An exchange that routes by key routed nothing: the messages were meant for a queue."""
    assert [("warning", "vhost", vhost)] == said(name=name, vhost=vhost, rate=rate)


def test_the_finding_counts_them_and_names_the_exchange():
    """What listed channels dropped is not counted."""
    result = look(film(lambda t: dropping(t, rate=5.0, listed=1.0), until=40))
    (finding,) = [each for each in result.findings if each.rule == RULE]

    assert 100 <= finding.facts["lost"] <= 150
    assert ("orders.in", "direct") == (finding.facts["exchange"], finding.facts["exchange_type"])
    assert "no client that is listed published them" in text(finding).summary


@pytest.mark.parametrize("fields", [{"kind": "topic"}, {"kind": "fanout"}, {"routed": 50.0}])
def test_events_without_a_subscriber_may_be_meant(fields):
    """Information then."""
    assert [("info", "vhost", "/")] == said(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"rate": 0.0, "listed": 20.0},
        {"rate": 0.0, "listed": 200.0},
        {"rate": 0.0, "listed": 20.0, "lives": 27.0},
        {"rate": 0.05},
        {"kind": "x-delayed-message"},
    ],
    ids=["listed", "fast", "ended", "few", "delayed"],
)
def test_what_is_explained_is_not_reported_again(fields):
    """The rules about listed channels say it, or nothing is lost."""
    assert [] == said(**fields)


def test_returned_messages_are_no_loss():
    """Their publisher knows."""

    def frame(t):
        return {**dropping(t), "vhosts": (VHost(name="/", stats=MessageStats(return_unroutable=int(9 * t))),)}

    assert [] == of(look(film(frame, until=40)), RULE)


def test_channels_that_were_read_later_than_virtual_hosts_explain_only_what_came_since():
    """A virtual host is read every 15 s: what it dropped before the first reading of channels is anybody's."""

    def frame(t):
        late = {} if t >= 15 else {"channels": Part()}
        return {**dropping(t, rate=0.0, listed=50.0), **late}

    assert [] == of(look(film(frame, until=25)), RULE)


@pytest.mark.parametrize("late", [3.0, 5.5])
@pytest.mark.parametrize(("rate", "began"), [(2.0, 3.0), (40.0, 3.0), (5.0, 14.0)])
@pytest.mark.parametrize("until", [15, 20, 30, 45, 60])
@pytest.mark.parametrize("every", [5, 15])
def test_a_client_whose_statistics_are_late_is_listed(late, rate, began, until, every):
    """A virtual host is read every 15 s, and counts what a new channel dropped before the channel itself shows it."""

    def frame(t):
        then, read = max(0.0, t // 15 * 15 - began), t // every * every
        total, theirs = int(rate * then), int(rate * max(0.0, read - late - began))
        counters = {"drop_unroutable": theirs} if theirs else {}
        here = read >= began
        return {
            "vhosts": Part(
                value=(VHost(name="/", stats=MessageStats(publish=9, drop_unroutable=total)),),
                at=moment(t // 15 * 15),
            ),
            "exchanges": (exchange("orders.in", type="direct", received=int(rate * max(0.0, t - began)), routed=0),),
            "channels": Part(
                value=(publisher(read, rate=rate, confirm=False, counters=counters),) if here else (), at=moment(read)
            ),
            "connections": (shop(),) if here else (),
        }

    assert [] == of(look(film(frame, until=until)), RULE)


@pytest.mark.parametrize("age", [300.0, 35.0])
@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("rate", [5.0, 80.0])
def test_clients_that_drop_nothing_do_not_explain_it(age, new, rate):
    """Channels of a first reading may be old, and a new one explains no more than it can have dropped since."""

    def frame(t):
        peers = {"10.0.0.7:4000 -> 10.0.0.1:5672": moment(-age).wall}
        if new and t >= 12:
            peers["10.0.0.8:4000 -> 10.0.0.1:5672"] = moment(11).wall
        return {
            **dropping(t, rate=rate),
            "channels": Part(
                value=tuple(publisher(t, peer=peer, confirm=False) for peer in peers), at=moment(t + 0.5 * (t == 0))
            ),
            "connections": tuple(shop(peer=peer, connected_at=since) for peer, since in peers.items()),
        }

    assert [("warning", "vhost", "/")] == of(look(film(frame, until=12, every=4.0)), RULE)
