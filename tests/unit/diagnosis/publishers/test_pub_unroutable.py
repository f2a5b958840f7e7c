from dataclasses import replace

import pytest

from ackscope.findings import ExchangeRef
from ackscope.snapshot import Overview, Part
from ackscope.topology import Binding, Bindings, Link
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import WALL, consumer, film, look, queue, snapshot, stats, text
from tests.unit.diagnosis.publishers.films import (
    PEER,
    busy_queue,
    exchange,
    facts,
    findings,
    of,
    publisher,
    shop,
    suppressed,
)

DROPPED, RETURNED = "pub-unroutable-dropped", "pub-unroutable-returned"
COUNTERS = {DROPPED: "drop_unroutable", RETURNED: "return_unroutable"}
BEGAN = 60.0


def unbound(rule=DROPPED, *, rate=10.0, routed=None, other=None, **fields):
    """An exchange that routed 1000 messages and loses its binding in second 60, while publishing continues.

    `routed` is the share that reaches a queue after that, 0 by default; exchanges are read every 15 s.
    """

    def frame(t):
        lost = int(rate * max(0.0, t - BEGAN) * (1.0 - (routed or 0.0)))
        read = t - t % 15
        read_lost = int(rate * max(0.0, read - BEGAN) * (1.0 - (routed or 0.0)))
        received = int(1000 + rate * read)
        what = {"received": received, "routed": received - read_lost, **fields}
        counters = {COUNTERS[rule]: lost} if lost else {}
        rest = other(read) if other else ()
        return {
            "queues": (busy_queue(t),),
            "channels": (publisher(t, rate=rate, counters=counters),),
            "connections": (shop(),),
            "exchanges": Part(value=(exchange(**what), *rest), at=snapshot(read).taken, seconds=0.1),
        }

    return frame


def never_bound(kind, rate=10.0):
    """An exchange that has never routed a message, in use since before the first snapshot."""

    def frame(t):
        lost = int(5000 + rate * t)
        return {
            "queues": (busy_queue(t),),
            "channels": (publisher(t, rate=rate, before=5000, counters={"drop_unroutable": lost}),),
            "connections": (shop(),),
            "exchanges": (exchange(received=lost, type=kind),),
        }

    return frame


@pytest.mark.parametrize("rule", [DROPPED, RETURNED])
def test_an_exchange_that_lost_its_binding_is_named_within_half_a_minute(rule):
    """Information first, because a deployment looks the same."""
    verdict = look(film(unbound(rule), until=BEGAN + 30))

    assert [("info", "exchange", "orders.in")] == of(verdict, rule)
    finding = findings(verdict, rule)[0]
    expected = {"exchange": "orders.in", "routing": "stopped", "received": 150, "lost": 150, "lost_rate": 10.0}
    assert expected == {key: finding.facts[key] for key in expected}
    assert ("early", 60.0) == (finding.certainty, finding.facts["warning_after_seconds"])
    assert (ExchangeRef("/", "orders.in"),) == finding.involved.exchanges
    assert ["exchange_received", "exchange_routed", "publisher"] == [item.key for item in finding.evidence]


@pytest.mark.parametrize(("rule", "severity"), [(DROPPED, "critical"), (RETURNED, "warning")])
def test_after_a_minute_it_is_urgent(rule, severity):
    """Dropped messages are lost silently, returned ones only where the application ignores them."""
    verdict = look(film(unbound(rule), until=BEGAN + 90))

    assert [(severity, "exchange", "orders.in")] == of(verdict, rule)
    assert ["shop"] == facts(verdict, rule)["clients"]


def test_dropped_and_returned_are_distinguished():
    """One counter of the channel rises, and only that rule reports."""
    assert [] == of(look(film(unbound(RETURNED), until=BEGAN + 90)), DROPPED)
    assert [] == of(look(film(unbound(DROPPED), until=BEGAN + 90)), RETURNED)


def test_a_fanout_that_lost_its_subscribers_is_a_warning_only():
    """Nobody has to subscribe to it."""
    verdict = look(film(unbound(type="fanout"), until=BEGAN + 90))

    assert [("warning", "exchange", "orders.in")] == of(verdict, DROPPED)


def test_a_part_that_is_lost_is_a_warning_after_five_minutes():
    """Some keys of a direct exchange have no queue any more."""
    early, late = (look(film(unbound(routed=0.5), until=BEGAN + more)) for more in (90, 330))

    assert [("info", "exchange", "orders.in")] == of(early, DROPPED)
    assert [("warning", "exchange", "orders.in")] == of(late, DROPPED)


def test_a_few_replies_to_requesters_that_are_gone_stay_information():
    """The default exchange routes all but one in a hundred."""
    frame = unbound(routed=0.98, rate=50.0, name="")

    assert {"info"} >= {severity for severity, _, _ in of(look(film(frame, until=BEGAN + 330)), DROPPED)}


@pytest.mark.parametrize(("kind", "severity"), [("direct", "warning"), ("topic", "info"), ("fanout", "info")])
def test_an_exchange_that_never_routed_is_urgent_only_where_keys_are_meant_for_somebody(kind, severity):
    """Events without subscribers vanish by design."""
    verdict = look(film(never_bound(kind), until=400))

    assert [(severity, "exchange", "orders.in")] == of(verdict, DROPPED)


def test_settings_name_exchanges_to_which_nobody_has_to_subscribe():
    """They are suppressed, with the reason."""
    thresholds = Thresholds.model_validate({"publishers": {"unroutable_by_design": ["^orders\\."]}})
    verdict = look(film(unbound(), until=BEGAN + 90), thresholds=thresholds)

    assert [] == of(verdict, DROPPED)
    assert [("orders.in", "by_design")] == suppressed(verdict, DROPPED)


def test_delayed_messages_are_suppressed():
    """They count as dropped, and are routed later."""
    verdict = look(film(unbound(type="x-delayed-message"), until=BEGAN + 90))

    assert [] == of(verdict, DROPPED)
    assert [("orders.in", "delayed_exchange")] == suppressed(verdict, DROPPED)


def test_exchanges_that_route_all_are_not_named():
    """Only the one that loses."""

    def other(t):
        return (exchange("events", received=int(500 + 30 * t), routed=int(500 + 60 * t)),)

    assert [("critical", "exchange", "orders.in")] == of(look(film(unbound(other=other), until=BEGAN + 90)), DROPPED)


def behind(alternate, *, bindings=(), routed=0.6, kind="topic", **fields):
    """An exchange that sends a part to its alternate exchange, which loses it; `alternate` is None if it is missing."""
    other = (lambda _: (exchange("rest", received=0, routed=0, type=alternate),)) if alternate else None
    frame = unbound(routed=routed, other=other, type=kind, arguments={"alternate-exchange": "rest"}, **fields)
    return lambda t: {**frame(t), "bindings": Bindings(counts={}, listed=bindings)}


@pytest.mark.parametrize(
    ("alternate", "bindings", "why"),
    [
        (None, (), "but does not exist"),
        ("fanout", (), "but no queue is bound to it"),
        (
            "direct",
            (
                Binding(
                    vhost="/", source="rest", destination="billing", destination_type="queue", routing_key="billing"
                ),
            ),
            "and this direct exchange has no binding for it",
        ),
    ],
    ids=["missing", "unbound", "another key"],
)
def test_what_an_alternate_exchange_loses_is_critical(alternate, bindings, why):
    """It shows that all messages should be kept, also where the exchange routes most of them."""
    own = Binding(vhost="/", source="orders.in", destination="billing", destination_type="queue", routing_key="a.*")
    early, late = (look(film(behind(alternate, bindings=(own, *bindings)), until=BEGAN + t)) for t in (40, 90))

    assert [("info", "exchange", "orders.in")] == of(early, DROPPED)
    assert [("critical", "exchange", "orders.in")] == of(late, DROPPED)
    assert why in text(findings(late, DROPPED)[0]).cause
    steps = str(text(findings(late, DROPPED)[0]).next_steps)
    assert ("#" if alternate != "direct" else "KEY") in steps
    assert "set_policy" not in steps


def test_an_exchange_that_is_bound_only_to_exchanges_without_a_queue_is_reported_so():
    """Its bindings match; what they lead to has no queue."""
    onward = Binding(vhost="/", source="orders.in", destination="crm", destination_type="exchange", routing_key="")
    frame = never_bound("fanout")
    crm = exchange("crm", received=0, routed=0, type="fanout")

    def picture(t):
        found = frame(t)
        more = {"exchanges": (*found["exchanges"], crm), "bindings": Bindings(counts={}, listed=(onward,))}
        return {**found, **more}

    verdict = look(film(picture, until=90))

    assert [("warning", "exchange", "orders.in")] == of(verdict, DROPPED)
    assert "bound to exchange 'crm' only, and no queue" in text(findings(verdict, DROPPED)[0]).cause


def test_a_publisher_that_gets_all_of_it_back_meant_it_for_a_queue():
    """It sets `mandatory`, and the fanout exchange has no binding."""

    def frame(t):
        found = never_bound("fanout")(t)
        returned = publisher(t, rate=10.0, before=5000, counters={"return_unroutable": int(5000 + 10 * t)})
        return {**found, "channels": (returned,)}

    assert [("warning", "exchange", "orders.in")] == of(look(film(frame, until=90)), RETURNED)


def test_two_lossy_exchanges_are_distinguished_by_their_rate():
    """One loses 10/s by drops, the other 3/s by returns."""
    dropping, peer = unbound(), "10.0.0.8:50001 -> 10.0.0.1:5672"

    def frame(t):
        picture = dropping(t)
        read = t - t % 15
        lost, seen = int(3 * max(0.0, t - BEGAN)), int(3 * max(0.0, read - BEGAN))
        back = publisher(t, rate=3.0, peer=peer, counters={"return_unroutable": lost} if lost else {})
        received = int(1000 + 3 * read)
        second = exchange("invoices", received=received, routed=received - seen)
        part = picture["exchanges"]
        return {
            **picture,
            "channels": (*picture["channels"], back),
            "connections": (shop(), shop(peer, client_name="invoicing")),
            "exchanges": Part(value=(*part.value, second), at=part.at, seconds=0.1),
        }

    verdict = look(film(frame, until=BEGAN + 90))

    assert [("critical", "exchange", "orders.in")] == of(verdict, DROPPED)
    assert [("warning", "exchange", "invoices")] == of(verdict, RETURNED)


def test_without_exchanges_the_publisher_is_named():
    """Who loses messages is known, the exchange is not."""

    def frame(t):
        return {**unbound()(t), "exchanges": Part(error="timed out")}

    verdict = look(film(frame, until=BEGAN + 60))

    assert [("info", "vhost", "/")] == of(verdict, DROPPED)
    assert (None, "not_read") == (facts(verdict, DROPPED)["exchange"], facts(verdict, DROPPED)["exchange_unknown"])


def test_one_message_is_no_finding():
    """A single drop at a restart is over."""

    def frame(t):
        picture = unbound()(t)
        lost = {"drop_unroutable": 1} if t >= BEGAN else {}
        return {**picture, "channels": (publisher(t, counters=lost),)}

    assert [] == of(look(film(frame, until=BEGAN + 20)), DROPPED)


def test_unroutable_messages_of_the_probes_are_not_reported():
    """They are unroutable by design."""

    def frame(t):
        return {**unbound()(t), "connections": (shop(client_name="ackscope-probe confirm"),)}

    assert [] == of(look(film(frame, until=BEGAN + 90)), DROPPED)


def test_bindings_say_whether_any_is_left():
    """None at all, or none that matches."""

    def bindings_with(listed):
        def frame(t):
            return {**unbound()(t), "bindings": Bindings(listed=listed)}

        return facts(look(film(frame, until=BEGAN + 90)), DROPPED)["bindings"]

    other = Binding(vhost="/", source="orders.in", destination="orders", destination_type="queue", routing_key="old")

    assert 0 == bindings_with(())
    assert 1 == bindings_with((other,))


def test_two_snapshots_are_enough():
    """`ackscope diagnose`: an exchange that used to route and routes nothing."""
    window = film(unbound(), start=BEGAN + 15, until=BEGAN + 30, every=15)

    verdict = look(window, thresholds=Thresholds.as_if_lasting())

    assert [("critical", "exchange", "orders.in")] == of(verdict, DROPPED)


def test_polls_that_are_far_apart_show_it_as_soon():
    """With a slow poll interval, one interval is long enough."""

    def frame(t):
        picture = unbound()(t)
        lost = int(10 * max(0.0, t - BEGAN))
        part = picture["exchanges"].value[0]
        counters = replace(part.stats, publish_in=int(1000 + 10 * t), publish_out=int(1000 + 10 * t) - lost)
        return {**picture, "exchanges": (replace(part, stats=counters),)}

    assert [("info", "exchange", "orders.in")] == of(look(film(frame, until=BEGAN + 20, every=20)), DROPPED)


STRANGER = "10.0.0.5:51111 -> 10.0.0.1:5672"


def lost_of(t, *, name="tariffs", kind="direct", bound=1, client="meter", peer=PEER, routed=0.0, rate=7.0, links=()):
    """One publisher whose messages an exchange loses, all of them; others publish `routed` a second there."""
    lost = int(400 + rate * t)
    passed = int(routed * t)
    bindings = tuple(
        Binding(vhost="/", source=name, destination="bills", destination_type="queue", routing_key=f"k{number}")
        for number in range(bound)
    )
    return {
        "queues": (busy_queue(t, rate=routed),),
        "channels": (
            publisher(t, rate=rate, before=400, peer=peer, counters={"drop_unroutable": lost}),
            publisher(t, rate=routed, before=0, peer=STRANGER),
        ),
        "connections": (shop(peer, client_name=client), shop(STRANGER, client_name="stranger")),
        "exchanges": (exchange(name, received=lost + passed, routed=passed, type=kind),),
        "bindings": Bindings(listed=bindings),
        "links": links,
    }


def lost_at(until, **fields):
    """The result for it after some seconds."""
    return look(film(lambda t: lost_of(t, **fields), until=until))


@pytest.mark.parametrize(
    ("fields", "until", "severity"),
    [
        ({"name": "", "kind": "direct", "bound": 0, "routed": 9.0}, 45, "info"),
        ({"name": "", "kind": "direct", "bound": 0, "routed": 9.0}, 75, "warning"),
        ({"kind": "headers"}, 75, "warning"),
        ({"kind": "direct"}, 75, "warning"),
        ({"kind": "direct", "bound": 0}, 75, "info"),
        ({"kind": "topic"}, 75, "info"),
        ({"kind": "topic"}, 315, "warning"),
        ({"kind": "topic", "bound": 0}, 315, "info"),
        ({"kind": "fanout", "bound": 0}, 315, "info"),
    ],
)
def test_it_is_urgent_where_something_shows_that_a_queue_was_meant(fields, until, severity):
    """A queue by its name, or queues that are bound and that no message of anybody reaches."""
    assert [(severity, "exchange", fields.get("name", "tariffs"))] == of(lost_at(until, **fields), DROPPED)


def test_a_publisher_that_loses_all_is_named_without_those_that_lose_nothing():
    """Others use the default exchange rightly."""
    found = facts(lost_at(75, name="", bound=0, routed=9.0), DROPPED)

    assert (["meter"], ["meter"], "partly") == (found["clients"], found["losers"], found["routing"])


def bridge(**fields):
    """A shovel that publishes to the exchange."""
    ends = {"source_queue": "edge", "target_exchange": "tariffs", "target_key": "x"}
    return Link(kind="shovel", name="uplink", vhost="/", type="dynamic", state="running", **{**ends, **fields})


@pytest.mark.parametrize(
    ("client", "peer", "links", "shovels"),
    [
        ("Shovel uplink", PEER, (bridge(),), ["uplink"]),
        ("Shovel far", PEER, (), ["far"]),
        ("Shovel uplink", PEER, (bridge(target_exchange=None),), ["uplink"]),
        (None, "<rabbit@one.1.2.3>", (bridge(),), ["uplink"]),
        ("Shovel uplink", PEER, (bridge(target_exchange="elsewhere"),), []),
        ("meter", PEER, (bridge(),), []),
    ],
    ids=["listed", "of another cluster", "keeps the exchange", "direct", "goes elsewhere", "an application"],
)
def test_what_a_shovel_took_from_a_queue_is_lost_for_good(client, peer, links, shovels):
    """Its source has deleted the messages, so also an exchange of events is critical."""
    verdict = lost_at(75, kind="topic", bound=0, client=client, peer=peer, links=links)

    assert shovels == facts(verdict, DROPPED)["shovels"]
    assert ["critical" if shovels else "info"] == [severity for severity, *_ in of(verdict, DROPPED)]
    commands = " ".join(step.command or "" for step in text(findings(verdict, DROPPED)[0]).steps)
    assert bool(shovels) == ("clear_parameter" in commands)


def test_each_lossy_exchange_names_its_own_publisher():
    """Two applications lose all, at two exchanges and at two rates."""

    def frame(t):
        one, two = lost_of(t), lost_of(t, name="invoices", client="printer", peer="10.0.0.6:5 -> b", rate=21.0)
        joined = {key: (*one[key], *two[key]) for key in ("connections", "exchanges")}
        return {**one, **joined, "channels": (one["channels"][0], two["channels"][0])}

    named = {each.subject.name: each.facts["clients"] for each in findings(look(film(frame, until=75)), DROPPED)}

    assert {"tariffs": ["meter"], "invoices": ["printer"]} == named


@pytest.mark.parametrize(("own", "rate"), [(10.0, 6.0), (10.0, 30.0), (3.0, 2.0), (40.0, 25.0)])
def test_a_publisher_whose_own_exchange_explains_its_loss_is_not_named_at_another(own, rate):
    """Clients that come and go publish to the other one."""

    def frame(t):
        one, two = (
            lost_of(t, rate=own),
            lost_of(t, name="invoices", client="printer", peer="10.0.0.6:5 -> b", rate=rate),
        )
        return {**one, "exchanges": (*one["exchanges"], *two["exchanges"])}

    result = look(film(frame, until=75))
    named = {each.subject.name: each.facts["clients"] for each in findings(result, DROPPED)}

    assert {"tariffs": ["meter"], "invoices": []} == named
    (other,) = [each for each in findings(result, DROPPED) if each.subject.name == "invoices"]
    assert "from clients that were not listed" in text(other).summary


@pytest.mark.parametrize("rate", [4.0, 9.0, 60.0])
@pytest.mark.parametrize("late", [20, 200])
def test_counters_of_a_healthy_exchange_that_are_refreshed_apart_show_no_loss(rate, late):
    """For one interval it seems to route less than it receives; the publisher loses all at another exchange."""

    def frame(t):
        losing, came = lost_of(t, rate=rate), int(20 * t) + 1000
        behind = late if t >= 75 else 0
        healthy = exchange("orders.paid", type="topic", received=came, routed=came - behind)
        return {**losing, "exchanges": (*losing["exchanges"], healthy)}

    assert ["tariffs"] == [each.subject.name for each in findings(look(film(frame, until=75)), DROPPED)]


def test_a_shovel_is_named_only_at_the_exchange_that_it_publishes_to():
    """An application loses as many messages a second at another exchange."""

    def frame(t):
        one = lost_of(t, client="Shovel uplink", links=(bridge(),))
        two = lost_of(t, name="invoices", client="printer", peer="10.0.0.6:5 -> b")
        joined = {key: (*one[key], *two[key]) for key in ("connections", "exchanges")}
        return {**one, **joined, "channels": (one["channels"][0], two["channels"][0])}

    named = {each.subject.name: each.facts["clients"] for each in findings(look(film(frame, until=75)), DROPPED)}

    assert {"tariffs": ["Shovel uplink"], "invoices": ["printer"]} == named


def merged(*frames):
    """One broker with all of these; publishers that lose nothing are left out."""
    joined = {key: tuple(it for each in frames for it in each[key]) for key in ("connections", "exchanges")}
    return {**frames[0], **joined, "channels": tuple(each["channels"][0] for each in frames)}


def events(t, *, measured=2.0, rate=2.0, peer="10.0.0.6:5 -> b", client="announcer"):
    """A publisher to an exchange of events that was never bound, which is read later than its channel."""
    made = lost_of(t, name="events", kind="fanout", bound=0, client=client, peer=peer, rate=rate)
    return {**made, "exchanges": (exchange("events", type="fanout", received=int(400 + measured * t)),)}


def default(t, lost, passed=30.0):
    """The default exchange, which loses some of its messages."""
    return exchange("", received=int((passed + lost) * t), routed=int(passed * t))


@pytest.mark.parametrize(("gone_at", "named"), [(BEGAN, ["fax.outbox"]), (BEGAN + 150, [])])
@pytest.mark.parametrize("rule", [DROPPED, RETURNED])
def test_a_queue_that_is_gone_since_the_loss_began_is_named(rule, gone_at, named):
    """A publisher sends to it by its name. A queue that was deleted later is not the reason."""

    def frame(t):
        made = unbound(rule, name="", type="direct")(t)
        fed = queue("fax.outbox", messages_ready=3, stats=stats(publish=int(4 * t)), arguments={"x-expires": 15_000})
        return {**made, "queues": (*made["queues"], *((fed,) if t < gone_at else ()))}

    finding = findings(look(film(frame, until=BEGAN + 200)), rule)[0]

    assert named == finding.facts["gone"]
    assert bool(named) == ("'fax.outbox' got messages until it was deleted or expired" in text(finding).cause)


@pytest.mark.parametrize("measured", [1.6, 2.0, 2.4])
@pytest.mark.parametrize("lost", [1.79, 2.0, 0.8])
def test_what_another_exchange_loses_is_not_claimed_for_the_default_exchange(measured, lost):
    """The client never used it: one loss belongs to one exchange, and counters are read at different times."""

    def frame(t):
        made = events(t, measured=measured)
        return {**made, "channels": made["channels"][:1], "exchanges": (*made["exchanges"], default(t, lost))}

    assert [("info", "exchange", "events")] == of(look(film(frame, until=400)), DROPPED)


def test_what_several_publishers_lose_elsewhere_is_not_claimed_for_the_default_exchange():
    """Together they account for the loss of their exchange."""

    def frame(t):
        one = events(t, measured=6.0)
        others = [events(t, peer=f"10.0.0.{number}:5 -> b", client=f"announcer {number}") for number in (7, 8)]
        made = merged(one, *others)
        return {**made, "exchanges": (*one["exchanges"], default(t, 1.79))}

    assert [("info", "exchange", "events")] == of(look(film(frame, until=400)), DROPPED)


@pytest.mark.parametrize("rate", [9.0, 2.0, 0.5])
def test_a_name_that_is_wrong_is_named_beside_events_that_nobody_takes(rate):
    """The events explain the loss of one publisher only."""

    def frame(t):
        wrong = lost_of(t, name="", bound=0, rate=rate)
        return merged({**wrong, "exchanges": (default(t, rate),)}, events(t))

    verdict = look(film(frame, until=75))
    named = {each.subject.name: (each.severity.value, each.facts["clients"]) for each in findings(verdict, DROPPED)}

    assert {"", "events"} == named.keys()
    assert ("warning", True) == (named[""][0], "meter" in named[""][1])
    if rate != 2.0:
        assert (["meter"], ["announcer"]) == (named[""][1], named["events"][1])


def test_what_our_probe_loses_is_not_part_of_the_loss():
    """It publishes one unroutable message a second, for longer than the application loses any."""

    def frame(t, began=300.0):
        lost = int(5 * max(0.0, t - began))
        counters = {"drop_unroutable": lost} if lost else {}
        probe = "10.0.0.2:7 -> b"
        return {
            "channels": (
                publisher(t, rate=5.0, counters=counters),
                publisher(t, rate=1.0, before=0, peer=probe, counters={"return_unroutable": int(t)}),
            ),
            "connections": (shop(), shop(probe, client_name="ackscope-probe confirm")),
            "exchanges": (exchange("", received=1000 + int(36 * t), routed=1000 + int(35 * t) - lost),),
        }

    early, late = (look(film(frame, until=until)) for until in (330, 380))

    assert [("info", "exchange", "")] == of(early, DROPPED)
    assert [("warning", "exchange", "")] == of(late, DROPPED)
    assert pytest.approx(5.0, abs=0.3) == facts(late, DROPPED)["lost_rate"]


def test_of_two_that_lose_alike_the_one_is_named_that_publishes_what_the_exchange_receives():
    """One loses a third of its messages, the other all of its few; the exchanges differ in what they receive."""
    peer = "10.0.0.8:50001 -> 10.0.0.1:5672"

    def frame(t):
        lost, small = int(3 * t), int(3.5 * t)
        partly = publisher(t, rate=9.0, counters={"drop_unroutable": lost})
        wholly = publisher(t, rate=3.5, peer=peer, counters={"drop_unroutable": small})
        return {
            "queues": (busy_queue(t),),
            "channels": (partly, wholly),
            "connections": (shop(), shop(peer, client_name="crm")),
            "exchanges": (
                exchange("orders.in", received=int(1000 + 9 * t), routed=int(1000 + 9 * t) - lost),
                exchange("contacts", received=5000 + small, routed=0),
            ),
        }

    verdict = look(film(frame, until=90))
    named = {each.subject.name: each.facts["clients"] for each in findings(verdict, DROPPED)}

    assert {"orders.in": ["shop"], "contacts": ["crm"]} == named


def short_look(*, before, healthy=False):
    """A publisher that connected 500 s ago and had lost `before` messages when ackscope began to look."""

    def frame(t):
        lost = before + int(10 * t)
        routed = int(10 * min(t, 30)) if healthy else 0
        received = before + int(10 * t)
        dropped = before + int(10 * max(0.0, t - 30)) if healthy else lost
        return {
            "queues": (busy_queue(t),),
            "channels": (publisher(t, rate=10.0, before=before, counters={"drop_unroutable": dropped}),),
            "connections": (shop(connected_at=WALL - 500),),
            "exchanges": (exchange(received=received, routed=routed),),
        }

    return frame


def test_counters_tell_for_how_long_messages_have_been_lost():
    """Four thousand lost messages at ten a second are more than five minutes, although it was seen for ten seconds."""
    long, short = (findings(look(film(short_look(before=each), until=15)), DROPPED)[0] for each in (4000, 100))

    assert ("warning", "info") == (long.severity, short.severity)
    assert 400 <= long.seen_seconds <= 425


def test_what_was_lost_before_is_not_of_this_deployment():
    """The exchange routed everything until half a minute ago, so the thousand were lost at another time."""
    verdict = look(film(short_look(before=1000, healthy=True), until=55))

    assert {"info"} >= {severity for severity, _, _ in of(verdict, DROPPED)}


@pytest.mark.parametrize("serves", [True, False])
def test_what_a_server_publishes_to_no_queue_may_be_replies(serves):
    """It consumes requests on the same channel; publishing such a reply again is useless."""

    def frame(t):
        lost = int(10 * t)
        requests = queue("requests", stats=stats(publish=lost, deliver=lost, ack=lost))
        server = publisher(t, rate=10.0, before=0, counters={"drop_unroutable": lost})
        of = server.name if serves else "10.0.0.8:50001 -> 10.0.0.1:5672 (1)"
        return {
            "queues": (requests,),
            "channels": (replace(server, consumer_count=int(serves)),),
            "consumers": (consumer("requests", channel_name=of, connection_name=of.rsplit(" (", 1)[0]),),
            "connections": (shop(),),
            "exchanges": (exchange("", received=2 * lost, routed=lost),),
        }

    finding = text(findings(look(film(frame, until=90)), DROPPED)[0])
    steps = " ".join(step.text for step in finding.steps)

    assert serves == ("reply_to" in finding.cause)
    assert serves != ("Publish again what was dropped" in steps)


def replies(t, *, version="3.10.8", sent=10, confirmed=0):
    """A server that consumes requests, and its client, which is sent packets and consumes from no queue."""
    lost = int(10 * t)
    requests = queue("requests", stats=stats(publish=lost, deliver=lost, ack=lost))
    server = publisher(t, rate=10.0, before=0, counters={"drop_unroutable": lost})
    consuming = consumer("requests", channel_name=server.name, connection_name=server.connection_name)
    asks = "10.0.0.9:5 -> 10.0.0.1:5672"
    asking = replace(shop(), name=asks, client_name="web", vhost="/", send_cnt=(sent + confirmed) * int(t))
    own = publisher(t, rate=10.0, peer=asks, confirm=False, counters={"confirm": confirmed * int(t)})
    return {
        "overview": Overview(rabbitmq_version=version, statistics=True, rates_mode="basic"),
        "queues": (requests,),
        "channels": (replace(server, consumer_count=1), own),
        "consumers": (consuming,),
        "connections": (shop(connected_at=WALL), asking),
        "exchanges": (exchange("", received=2 * lost, routed=2 * lost if version == "3.10.8" else lost),),
    }


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({"sent": 30}, "info"),
        ({"sent": 6}, "info"),
        ({"sent": 0, "confirmed": 10}, "info"),
        ({"version": "4.1.0", "sent": 30}, "info"),
        ({"version": "4.2.0"}, "warning"),
        ({"sent": 0}, "warning"),
    ],
)
def test_answers_to_direct_reply_to_count_as_dropped_before_4_2(fields, severity):
    """If it is not clear that as many arrive, it is information."""
    finding = findings(look(film(lambda t: replies(t, **fields), until=400)), DROPPED)[0]

    assert severity == finding.severity
    assert (severity == "info") == ("they arrive" in text(finding).summary)


@pytest.mark.parametrize("fields", [{}, {"version": "4.1.0"}, {"confirmed": 10}, {"sent": 12}])
def test_answers_that_arrive_are_suppressed(fields):
    """The client is sent as many packets as answers are said to be dropped, beside the confirms of its requests."""
    result = look(film(lambda t: replies(t, **fields), until=400))

    assert [] == findings(result, DROPPED)
    assert [(DROPPED, "direct_replies")] == [(each.rule, each.reason) for each in result.suppressed]
