"""Messages without a route at a broker that lists no clients, and counts what each exchange loses."""

from dataclasses import replace

import pytest

from ackscope.findings import Certainty, FieldRef
from ackscope.records import ProbeOutcome, ProbeState
from ackscope.second_source import MetricsReading, NativeTotals
from ackscope.snapshot import Node, Overview, Part
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.preconditions import CLIENT_LISTS
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import NODE, WALL, evidence, full_text, look, moment, queue, snapshot, stats, text
from tests.unit.diagnosis.publishers.films import facts, of, suppressed

DROPPED, RETURNED, ALTERNATE = "pub-unroutable-dropped", "pub-unroutable-returned", "pub-unroutable-alternate"
JOINED = MetricsReading(nodes=("rabbit@a", "rabbit@b"), families=("queues", "overview", "nodes", "exchanges"))
ORIGIN = ("/metrics/detailed", "rabbitmq_detailed_exchange_messages_unroutable_dropped_total")


def exchange(name, received, *, dropped=0, returned=0, **fields):
    """Return a direct exchange with the counters of its endpoint: what is not lost is routed."""
    counted = {"publish_in": int(received), "drop_unroutable": int(dropped), "return_unroutable": int(returned)}
    routed = int(received) - int(dropped) - int(returned)
    defaults = {"vhost": "eu", "type": "direct", "durable": True}
    return Exchange(name=name, stats=stats(publish_out=routed, **counted), **{**defaults, **fields})


def stops(name, rate, begin=60, *, before=5000, lost="dropped", **fields):
    """Return a film of an exchange that routes everything until a second, and nothing since."""
    return lambda t: exchange(name, before + rate * t, **{lost: rate * max(0, t - begin)}, **fields)


def loses(name, rate, share=1.0, *, lost="dropped", **fields):
    """Return a film of an exchange that loses a share of its messages all the time."""
    return lambda t: exchange(name, rate * t, **{lost: share * rate * t}, **fields)


def bound(source, destination="work", kind="queue", key="new"):
    """Return a binding."""
    return Binding(vhost="eu", source=source, destination=destination, destination_type=kind, routing_key=key)


def watch(
    *films, until=200, queues=lambda _: (), bindings=(), version="4.3.6", outcomes=(), every=5, native=None, **more
):
    """Return the diagnosis of a film of exchanges of a broker without statistics."""
    window = Window.empty("shop")
    for seconds in range(0, until, every):
        counters = stats(publish=5000 + 30 * seconds, drop_unroutable=100 + 20 * seconds)
        taken = snapshot(
            seconds,
            overview=Overview(rabbitmq_version=version, statistics=False, rates_mode="basic", stats=counters),
            exchanges=Part(
                value=tuple(each(seconds) for each in films),
                at=moment(seconds),
                origins={"message_stats.drop_unroutable": ORIGIN},
            ),
            nodes=(Node(name=NODE, running=True, uptime_seconds=90_000.0 + seconds),),
            queues=queues(seconds),
            bindings=Bindings(listed=tuple(bindings(seconds) if callable(bindings) else bindings)),
        )
        totals = NativeTotals(unroutable=None if native is None else native(seconds))
        known = Part(value=replace(JOINED, native=totals), at=moment(seconds))
        window = window.add(replace(taken, prometheus=known, **dict.fromkeys(CLIENT_LISTS, Part())))
    return look(window, outcomes=outcomes, **more)


def probe(rate, vhost="eu"):
    """Return the outcome of our stream whose messages no queue takes."""
    return ProbeOutcome(
        probe="confirm",
        stream="unroutable",
        queue_type="none",
        vhost=vhost,
        queue="",
        node="rabbit@a",
        at=WALL + 199,
        state=ProbeState.RUNNING,
        rate=rate,
    )


def gaps(verdict, rule):
    """Return why a rule is inconclusive."""
    return [gap.reason for gap in verdict.inconclusive if gap.rule == rule]


@pytest.mark.parametrize(("name", "rate"), [("invoices.out", 6), ("telemetry", 700), ("k", 0.5)])
def test_an_exchange_that_stops_routing_is_named(name, rate):
    """It routed until then, so its messages were meant for a queue. The client is not known, and the text says so."""
    verdict = watch(stops(name, rate, begin=100), bindings=(bound(name, key="old"),))
    (finding,) = [each for each in verdict.findings if each.rule == DROPPED]
    report = full_text(finding)

    assert [("critical", "exchange", name)] == of(verdict, DROPPED)
    assert pytest.approx(rate, rel=0.15) == finding.facts["lost_rate"]
    assert ([], True, True) == tuple(finding.facts[it] for it in ("clients", "clients_unknown", "routed_before"))
    assert WALL + 90 <= moment(0).wall + finding.seen_seconds <= WALL + 110
    assert (FieldRef(*ORIGIN),) == evidence(finding, "exchange_lost").source
    assert "not listed" not in report
    assert "rabbitmqctl list_channels pid name connection user vhost" in report
    assert ([], []) == (of(verdict, RETURNED), gaps(verdict, DROPPED))


def test_what_comes_back_is_returned_and_not_dropped():
    """Each counter has its rule."""
    verdict = watch(stops("orders.in", 4, lost="returned"))

    assert ([], [("warning", "exchange", "orders.in")]) == (of(verdict, DROPPED), of(verdict, RETURNED))
    assert "list_channels" in full_text(next(each for each in verdict.findings if each.rule == RETURNED))


def test_a_loss_of_a_few_seconds_is_no_warning():
    """A deployment binds its queue again."""
    verdict = watch(stops("orders.in", 8, begin=170))
    (finding,) = [each for each in verdict.findings if each.rule == DROPPED]

    assert ("info", Certainty.EARLY) == (finding.severity.value, finding.certainty)


def test_each_exchange_is_judged_by_itself():
    """One stops, one of the same virtual host drops events, and one of another one returns as many."""
    verdict = watch(
        stops("orders.in", 9),
        loses("events", 9, type="fanout"),
        stops("orders.in", 9, vhost="us", lost="returned"),
        loses("quiet", 0),
    )

    assert [("critical", "exchange", "orders.in"), ("info", "exchange", "events")] == of(verdict, DROPPED)
    assert ["us"] == [each.subject.vhost for each in verdict.findings if each.rule == RETURNED]


@pytest.mark.parametrize("kind", ["fanout", "topic", "headers"])
def test_events_without_a_subscriber_are_information(kind):
    """Nobody ever bound a queue, however long it lasts; our rule is not louder without clients than with them."""
    verdict = watch(loses("events", 40, type=kind), until=595)
    (finding,) = [each for each in verdict.findings if each.rule == DROPPED]

    assert "info" == finding.severity.value
    assert "harmless" in text(finding).summary


def test_subscribers_to_some_keys_are_information():
    """A topic exchange that routes a part: events have keys that nobody needs."""
    verdict = watch(loses("events", 40, 0.6, type="topic"), bindings=(bound("events", key="a.#"),), until=595)

    assert ["info"] == [severity for severity, *_ in of(verdict, DROPPED)]


def test_settings_and_delays_suppress_it():
    """Names that need no subscriber, and messages that are routed later."""
    limits = Thresholds()
    limits = limits.model_copy(
        update={"publishers": limits.publishers.model_copy(update={"unroutable_by_design": ("^audit",)})}
    )
    verdict = watch(loses("audit.all", 5), loses("later", 5, type="x-delayed-message"), thresholds=limits)

    assert [] == of(verdict, DROPPED)
    assert {("audit.all", "by_design"), ("later", "delayed_exchange")} == set(suppressed(verdict, DROPPED))


def test_headers_that_never_match():
    """A queue is bound, and no message ever reached it."""
    verdict = watch(loses("pages", 5, type="headers"), bindings=(bound("pages"),), queues=lambda _: (queue("work"),))

    assert [("warning", "exchange", "pages")] == of(verdict, DROPPED)


def test_an_exchange_behind_which_there_is_nothing():
    """It is bound to another one, to which no queue is bound."""
    films = loses("in", 7, type="fanout"), loses("next", 0, type="fanout")
    verdict = watch(*films, bindings=(bound("in", "next", "exchange"),))

    assert [("warning", "exchange", "in")] == of(verdict, DROPPED)
    assert ["next"] == facts(verdict, DROPPED)["dead_ends"]


def test_an_alternate_exchange_that_loses():
    """It should take what no binding matches. The exchange that got the messages counts the loss."""
    films = loses("in", 12, type="topic", arguments={"alternate-exchange": "rest"}), loses("rest", 0)
    verdict = watch(*films, bindings=(bound("rest"),))

    assert [("critical", "exchange", "in")] == of(verdict, DROPPED)
    assert "rest" == facts(verdict, DROPPED)["alternate"]


def test_a_part_is_no_warning_before_five_minutes():
    """Without clients it is not known whether one of them loses all."""
    films = loses("jobs", 20, 0.3), (bound("jobs"),)
    early, late = (watch(films[0], bindings=films[1], until=until) for until in (200, 595))

    assert ["info"] == [severity for severity, *_ in of(early, DROPPED)]
    assert ["warning"] == [severity for severity, *_ in of(late, DROPPED)]
    assert "of 2" in text(next(each for each in late.findings if each.rule == DROPPED)).summary


def test_a_few_in_a_thousand_stay_information():
    """Replies to requesters that are gone."""
    verdict = watch(loses("", 100, 0.02), until=595)

    assert ["info"] == [severity for severity, *_ in of(verdict, DROPPED)]


@pytest.mark.parametrize("own", [5.0, 50.0])
def test_what_our_probes_lose_is_theirs(own):
    """All of it goes to the default exchange, by design."""
    alone = watch(lambda t: exchange("", 40 * t + own * t, dropped=own * t), outcomes=(probe(own),))
    beside = watch(lambda t: exchange("", 40 * t + 3 * own * t, dropped=3 * own * t), outcomes=(probe(own),))
    elsewhere = watch(lambda t: exchange("", 40 * t, dropped=own * t), outcomes=(probe(own, "other"),))

    assert [] == of(alone, DROPPED)
    assert pytest.approx(2 * own, rel=0.1) == facts(beside, DROPPED)["lost_rate"]
    assert pytest.approx(own, rel=0.1) == facts(elsewhere, DROPPED)["lost_rate"]


@pytest.mark.parametrize("own", [1.0, 20.0])
def test_our_probes_may_catch_up(own):
    """They were late, and publish what was due meanwhile."""

    def film(t):
        due = t if t < 140 else max(140, min(t, 140 + 3 * (t - 170)))
        return exchange("", 40 * t + own * due, dropped=own * due)

    assert [[], []] == [of(watch(film, until=until, outcomes=(probe(own),)), DROPPED) for until in (186, 191)]


def test_probes_of_another_ackscope_lose_as_many_as_their_queues_get():
    """`ackscope diagnose` beside an exporter, or two exporters: no outcome tells of them, and no client is listed."""

    def probed(*names, rate=3, runs=1):
        return lambda t: tuple(
            queue(name, vhost="eu", consumers=1, stats=stats(publish=int(runs * rate * t))) for name in names
        )

    one = probed("ackscope.probe.confirm.classic", "ackscope.probe.confirm.quorum", "ackscope.probe.rtt.classic")
    two = probed("ackscope.probe.confirm.classic", runs=2)
    apart = probed("ackscope.probe.confirm.classic", "ackscope.probe.once.a1b2.confirm.quorum")
    lost = lambda rate: lambda t: exchange("", 40 * t, dropped=rate * t)  # noqa: E731

    assert [[], [], []] == [of(watch(lost(n), queues=own), DROPPED) for n, own in ((3, one), (6, two), (6, apart))]
    assert pytest.approx(9, rel=0.1) == facts(watch(lost(12), queues=one), DROPPED)["lost_rate"]
    assert [("info", "exchange", "")] == [
        each[:3] for each in of(watch(lost(3), queues=probed("orders.confirm.x")), DROPPED)
    ]


@pytest.mark.parametrize(("native", "reasons"), [(lambda t: 3 * t, ["no_client_lists"]), (lambda _: 40, [])])
def test_what_clients_of_amqp10_get_back_counts_at_no_exchange(native, reasons):
    """Their total alone names neither exchange nor client."""
    assert reasons == gaps(watch(lambda t: exchange("", 40 * t), native=native), RETURNED)


def test_exchanges_of_our_probes_are_left_out():
    """They are no application's."""
    assert [] == of(watch(loses("ackscope.probe.x", 5)), DROPPED)


@pytest.mark.parametrize(("version", "expected"), [("4.0.5", ["perhaps_answers"]), ("4.2.0", [])])
def test_answers_to_direct_reply_to_count_as_dropped_before_4_2(version, expected):
    """Only clients would tell whether these arrive. Another exchange is judged all the same."""
    verdict = watch(loses("", 30, 0.9), stops("orders.in", 9), version=version)
    named = [name for _, _, name in of(verdict, DROPPED)]

    assert expected == gaps(verdict, DROPPED)
    assert (["orders.in"] if expected else ["", "orders.in"]) == sorted(named)


def test_a_queue_that_was_away():
    """An auto-delete queue goes with its consumer, and the exchange loses messages only then."""

    def away(t):
        return 40 <= t % 60 < 50

    def film(t):
        lost = sum(away(second) for second in range(t))
        return exchange("orders.in", 1000 + 10 * t, dropped=10 * lost)

    def queues(t):
        came = sum(not away(second) for second in range(t // 60 * 60, t))
        counters = stats(publish=10 * came, deliver=10 * came, ack=10 * came)
        return () if away(t) else (queue("work", vhost="eu", auto_delete=True, stats=counters),)

    verdict = watch(film, queues=queues, bindings=lambda t: () if away(t) else (bound("orders.in"),), until=235)

    assert [("warning", "exchange", "orders.in")] == of(verdict, DROPPED)
    assert ["work"] == facts(verdict, DROPPED)["away"]
    assert " of  while" not in text(next(each for each in verdict.findings if each.rule == DROPPED)).summary


def test_a_queue_behind_an_alternate_exchange():
    """Nobody takes what no binding matches."""
    films = loses("in", 6, 0, arguments={"alternate-exchange": "rest"}), loses("rest", 0, type="fanout")

    def queues(t):
        return (queue("kept", vhost="eu", consumers=0, messages_ready=6 * t, stats=stats(publish=6 * t)),)

    verdict = watch(*films, queues=queues, bindings=(bound("rest", "kept", key=""),))

    assert [("warning", "queue", "kept")] == of(verdict, ALTERNATE)
    assert [] == gaps(verdict, ALTERNATE)


def test_counters_that_appear_are_no_messages():
    """Until the endpoints are read, exchanges have no counters. What they lost before is long over."""

    def film(t):
        known = exchange("orders.in", 9000, dropped=4000)
        return known if t >= 20 else replace(known, stats=stats())

    verdict = watch(film, until=60, bindings=lambda t: (bound("orders.in"),) if t < 15 else ())

    assert [] == of(verdict, DROPPED) + of(verdict, "binding-missing")


def test_counters_that_begin_again():
    """A node restarted. It loses nothing since."""
    assert [] == of(watch(lambda t: exchange("a", 90 * t, dropped=9 * t) if t < 150 else exchange("a", t)), DROPPED)


def test_a_burst_is_no_steady_loss():
    """A single interval may be a restart of a consumer."""
    assert [] == of(watch(lambda t: exchange("a", 90 * t, dropped=50 * (t >= 190)), until=196), DROPPED)


def test_clients_are_asked_for_where_nothing_counts_exchanges():
    """Without such counters the rule about returned messages says what it lacks."""
    verdict = watch(stops("orders.in", 9))
    bare = replace(JOINED, families=("queues", "overview", "nodes"))
    window = Window.empty("shop")
    for seconds in range(0, 60, 5):
        taken = snapshot(seconds, overview=Overview(rabbitmq_version="4.3.6", statistics=False, rates_mode="basic"))
        known = Part(value=bare, at=moment(seconds))
        window = window.add(replace(taken, prometheus=known, **dict.fromkeys(CLIENT_LISTS, Part())))

    assert [] == gaps(verdict, RETURNED)
    assert ["no_client_lists"] == gaps(look(window), RETURNED)
