"""Connections and channels of a broker without statistics: only the totals of the cluster are known."""

from dataclasses import replace

import pytest

from ackscope.findings import Certainty, flat
from ackscope.second_source import MetricsReading, NativeTotals
from ackscope.snapshot import Overview, Part
from ackscope.topology import AuthAttempts, Limit, VHost
from diagnosis.preconditions import CLIENT_LISTS
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import NODE, WALL, look, moment, snapshot, stats, text
from tests.unit.diagnosis.probing.heard import outcome, step

JOINED = MetricsReading(nodes=("rabbit@a",), families=("queues", "overview", "nodes"), native=NativeTotals())


def totals(
    t, *, connections=30, channels=30, consumers=8, connected=0, ended=None, opened=0, closed=None, messages=20.0
):
    """Return the totals of a cluster; `messages` a second are published, and delivered."""
    ended, closed = connected if ended is None else ended, opened if closed is None else closed
    churn = {
        "connection_created": 35 + int(connected),
        "connection_closed": 5 + int(ended),
        "channel_created": 40 + int(opened),
        "channel_closed": 10 + int(closed),
    }
    moved = int(1000 + messages * t) if isinstance(messages, float) else int(messages(t))
    return Overview(
        rabbitmq_version="4.3.6",
        statistics=False,
        rates_mode="basic",
        connections=int(connections),
        channels=int(channels),
        consumers=int(consumers),
        churn=churn,
        stats=stats(publish=moved, deliver=moved, deliver_get=moved),
    )


def seen(of, *, until=90, every=5, start=0, outcomes=(), logins=None):
    """Return what is found in a film of totals, by second, of a broker that lists no clients."""
    window = Window.empty("shop")
    for seconds in range(start, until + 1, every):
        auth = () if logins is None else logins(seconds)
        taken = snapshot(seconds, overview=of(seconds), auth=auth)
        known = Part(value=replace(JOINED), at=moment(seconds))
        window = window.add(replace(taken, prometheus=known, **dict.fromkeys(CLIENT_LISTS, Part())))
    return look(window, outcomes=outcomes)


def of_rule(result, rule):
    """Return the findings of a rule, causes and consequences."""
    return [each for each in flat(result.findings) if each.rule == rule]


RULES = ("connection-churn", "channel-churn", "connection-leak", "channel-leak")


def named(result):
    """Return which of these rules found something."""
    return sorted({each.rule for each in flat(result.findings)} & set(RULES))


@pytest.mark.parametrize(("rate", "each"), [(2.0, 1), (40.0, 3), (1.4, 0)])
def test_connections_that_come_and_go_are_a_finding_about_the_cluster(rate, each):
    """Its steps can be followed without lists; what it does not see stays inconclusive."""
    result = seen(lambda t: totals(t, connected=rate * t, opened=each * rate * t))
    (finding,) = of_rule(result, "connection-churn")
    report = text(finding)

    assert ["connection-churn"] == named(result)
    assert ("cluster", "shop", "info") == (finding.subject.kind, finding.subject.name, finding.severity.value)
    assert pytest.approx(rate, rel=0.1) == finding.facts["cycle_rate"]
    assert "lists no clients" in report.cause
    assert "too briefly" not in report.cause
    assert any("list_connections" in (step.command or "") for step in report.steps)
    assert ["no_client_lists"] == [gap.reason for gap in result.inconclusive if gap.rule == "connection-churn"]


@pytest.mark.parametrize(("connections", "severity"), [(20, "warning"), (60, "info")])
def test_a_loop_of_connections_is_a_warning_after_five_minutes(connections, severity):
    """From a tenth of the open connections on, as with lists."""
    film = lambda t: totals(t, connections=connections, connected=3.0 * t, opened=3.0 * t)  # noqa: E731

    (finding,) = of_rule(seen(film, until=400), "connection-churn")

    assert severity == finding.severity.value


@pytest.mark.parametrize(("rate", "connected", "every"), [(20.0, 0.0, 5), (4.0, 0.1, 5), (300.0, 2.0, 15)])
def test_channels_that_come_and_go_without_their_connections(rate, connected, every):
    """More than connections that come and go account for; also if the endpoints are read every 15 s only."""
    film = lambda t: totals(t, connected=connected * t, opened=(rate + connected) * t)  # noqa: E731

    result = seen(film, every=every)
    (finding,) = of_rule(result, "channel-churn")
    report = text(finding)

    assert ("cluster", "info") == (finding.subject.kind, finding.severity.value)
    assert pytest.approx(rate, rel=0.1) == finding.facts["cycle_rate"]
    assert (Certainty.EARLY if rate > 10 else Certainty.LIKELY) == finding.certainty
    assert "lists no clients" in report.cause
    assert not any("None" in f"{step.text} {step.command or ''}" for step in report.steps)


def test_a_loop_of_channels_beside_connections_that_are_opened():
    """Those that stay close no channel."""
    film = lambda t: totals(t, connections=30 + 2 * t, connected=2 * t, ended=0, opened=20 * t)  # noqa: E731

    assert ["channel-churn", "connection-leak"] == named(seen(film))


@pytest.mark.parametrize(("connections", "severity"), [(30, "warning"), (300, "info")])
def test_a_loop_of_channels_is_a_warning_after_five_minutes(connections, severity):
    """Many slow clients look like a fast one, so the rate grows with the connections."""
    film = lambda t: totals(t, connections=connections, opened=20.0 * t)  # noqa: E731

    (finding,) = of_rule(seen(film, until=400), "channel-churn")

    assert severity == finding.severity.value


def own_outcomes(*, connects, closes):
    """Return the outcomes of our own probes: so many connections, and channels, opened and closed within a minute."""
    return (
        outcome("handshake", steps={"channel": step(count=connects)}, at=WALL + 90),
        outcome("redelivery", steps={"channel-close": step(count=closes)}, at=WALL + 90),
    )


def test_our_own_probes_do_not_count():
    """Where they probe many nodes often, they open and close more than one connection and channel a second."""
    film = lambda t: totals(t, connected=1.5 * t, opened=3.5 * t)  # noqa: E731

    assert ["channel-churn", "connection-churn"] == named(seen(lambda t: totals(t, connected=1.5 * t, opened=30 * t)))
    assert [] == named(seen(film, outcomes=own_outcomes(connects=90, closes=120)))


def deployment(t):
    """Each of 200 clients connects again at once."""
    done = 200 if t >= 60 else 0
    return totals(t, connected=done, opened=done)


def dropped(t):
    """A client that leaked is restarted: many are closed at once, while few come and go."""
    gone = 160 if t >= 80 else 0
    return totals(
        t, connections=190 - gone, channels=190 - gone, connected=0.2 * t, ended=0.2 * t + gone, opened=0.4 * t
    )


def brief_with_channels(t):
    """Connections that come and go open four channels each."""
    return totals(t, connected=0.5 * t, opened=2.0 * t)


def wave(t):
    """A deployment of 6 s, in which clients declare what they need on channels of their own."""
    return totals(t, opened=25 * min(6, max(0, t - 60)))


def many_slow(t):
    """2,000 connections open a channel each once in three minutes."""
    return totals(t, connections=2000, channels=2100, opened=11.0 * t)


def restarted(t):
    """The counters begin again."""
    return totals(t, connected=900 if t < 60 else 3, opened=1900 if t < 60 else 9)


@pytest.mark.parametrize("film", [totals, deployment, wave, dropped, brief_with_channels, many_slow, restarted])
@pytest.mark.parametrize("every", [5, 15])
def test_what_looks_like_churn_is_not_reported(film, every):
    """Whatever the moment."""
    for until in range(30, 181, 15):
        assert [] == named(seen(film, until=until, every=every))


def test_without_counters_nothing_is_said_of_loops():
    """Absent is not zero: the rules stay inconclusive."""
    result = seen(lambda t: replace(totals(t, connected=9.0 * t, opened=99.0 * t), churn={}))

    assert [] == named(result)
    assert set(RULES) <= {gap.rule for gap in result.inconclusive if gap.reason == "no_client_lists"}


@pytest.mark.parametrize(("rate", "base", "every"), [(2.0, 30, 5), (0.5, 60, 15), (9.0, 400, 5)])
def test_connections_that_become_more_and_more(rate, base, every):
    """While neither consumers nor messages become more."""
    film = lambda t: totals(t, connections=base + rate * max(0, t - 40), connected=rate * t, ended=0)  # noqa: E731

    result = seen(film, until=150, every=every)
    (finding,) = of_rule(result, "connection-leak")
    report = text(finding)

    assert ["connection-leak"] == named(result)
    assert ("cluster", "info", Certainty.EARLY) == (finding.subject.kind, finding.severity.value, finding.certainty)
    assert pytest.approx(rate * 110, abs=2) == finding.facts["growth"]
    assert "lists no clients" in report.cause
    assert not any("None" in f"{step.text} {step.command or ''}" for step in report.steps)


@pytest.mark.parametrize("rate", [3.0, 11.0])
def test_channels_that_become_more_and_more(rate):
    """While connections, consumers and messages do not."""
    film = lambda t: totals(t, channels=45 + rate * max(0, t - 40), opened=rate * t, closed=0)  # noqa: E731

    result = seen(film, until=150)
    (finding,) = of_rule(result, "channel-leak")
    report = text(finding)

    assert ["channel-leak"] == named(result)
    assert ("cluster", "info") == (finding.subject.kind, finding.severity.value)
    assert "lists no clients" in report.cause
    assert not any("None" in f"{step.text} {step.command or ''}" for step in report.steps)


def test_two_leaks_at_once_are_told_apart():
    """Each new connection brings a channel or two at most."""
    film = lambda t: totals(t, connections=30 + ramp(t), channels=30 + 5 * ramp(t))  # noqa: E731

    result = seen(film, until=150)
    (channels,) = of_rule(result, "channel-leak")

    assert ["channel-leak", "connection-leak"] == named(result)
    assert pytest.approx(3 * 110, abs=9) == channels.facts["growth"]


@pytest.mark.parametrize(
    ("what", "rate", "until", "severity"),
    [
        ("connections", 1.0, 400, "warning"),
        ("connections", 0.3, 400, "info"),
        ("connections", 0.05, 2400, "warning"),
        ("channels", 1.0, 400, "warning"),
        ("channels", 0.2, 400, "info"),
        ("channels", 0.05, 2400, "warning"),
    ],
)
def test_a_leak_is_a_warning_after_minutes_if_many_were_opened(what, rate, until, severity):
    """And after half an hour in any case."""
    film = lambda t: totals(t, **{what: 30 + rate * t})  # noqa: E731

    (finding,) = of_rule(seen(film, until=until), what.removesuffix("s") + "-leak")

    assert severity == finding.severity.value


def ramp(t, begin=40.0, seconds=1e9):
    """Return for how many seconds something has grown."""
    return min(seconds, max(0.0, t - begin))


def pool(t):
    """Fills within 45 s and stays."""
    return totals(t, connections=30 + 2 * ramp(t, seconds=45), channels=30 + 2 * ramp(t, seconds=45))


def at_once(t):
    """A deployment: many at once, and a few later."""
    return totals(t, connections=30 + 100 * (t >= 60) + 0.1 * ramp(t), channels=30 + 100 * (t >= 60) + 0.1 * ramp(t))


def wave_after_two(t):
    """Two clients start, and a minute later a deployment opens 50 connections within 25 s."""
    here = 30 + 2 * (t >= 50) + 2 * ramp(t, 110, 25)
    return totals(t, connections=here, channels=here)


def rush_hour(t):
    """Clients and their messages become more."""
    busier = 2 * ramp(t)
    return totals(
        t, connections=30 + busier, channels=30 + busier, messages=lambda t: 1000 + 20 * t + 0.66 * ramp(t) ** 2
    )


def workers(t):
    """Each new one consumes; messages wait in few queues, and their rate is the same."""
    return totals(t, connections=30 + 2 * ramp(t), channels=30 + 2 * ramp(t), consumers=8 + 2 * ramp(t))


def listeners(t):
    """An application subscribes to more and more queues, each on its own channel."""
    return totals(t, channels=30 + 2 * ramp(t), consumers=8 + 2 * ramp(t))


def back_again(t):
    """All clients lost their connections, and come back one after another; most of their queues are idle."""
    here = 230 if t < 60 else 30 + min(200, 2 * ramp(t, 60))
    return totals(t, connections=here, channels=here)


def come_and_go(t):
    """The number swings."""
    here = 60 + 30 * (t // 30 % 2)
    return totals(t, connections=here, channels=here)


def slow_rise(t):
    """A twentieth more within minutes."""
    return totals(t, connections=900 + 0.3 * t, channels=900 + 0.3 * t)


@pytest.mark.parametrize(
    "film", [pool, at_once, wave_after_two, rush_hour, workers, listeners, back_again, come_and_go, slow_rise]
)
@pytest.mark.parametrize("every", [5, 15])
def test_what_looks_like_a_leak_is_not_reported(film, every):
    """Whatever the moment."""
    for until in range(45, 256, 30):
        assert [] == named(seen(film, until=until, every=every))


def test_devices_that_connect_over_mqtt_are_no_leak():
    """The logins of the nodes tell the protocol; a leak over AMQP of the same size is one."""

    def logins(protocol):
        return lambda t: tuple(
            AuthAttempts(node=NODE, protocol=name, total=number, succeeded=number, failed=0)
            for name, number in (("amqp091", 40 + t // 30), (protocol, 90 + 2 * t))
        )

    film = lambda t: totals(t, connections=30 + 2 * ramp(t))  # noqa: E731

    assert [] == named(seen(film, until=150, logins=logins("mqtt")))
    assert ["connection-leak"] == named(seen(film, until=150, logins=logins("amqp10")))


def test_our_own_connections_at_the_beginning_are_no_leak():
    """The probes of many nodes connect one after another when the exporter starts."""
    streams = tuple(outcome("confirm", stream=f"s{number}", at=WALL + 90) for number in range(60))
    film = lambda t: totals(t, connections=3 + 0.8 * t, channels=3 + 0.8 * t)  # noqa: E731

    assert ["connection-leak"] == named(seen(film))
    assert [] == named(seen(film, outcomes=streams))


def limited(t, *, value, vhosts=("shop",), name="max-connections", scope="vhost", total=40, **fields):
    """Parts with one limit, of a cluster that has so many connections and channels."""
    limit = Limit(scope=scope, subject="shop", name=name, value=value)
    return {
        "overview": totals(t, connections=total, channels=total),
        "limits": (limit,),
        "vhosts": tuple(VHost(name=each, cluster_state={NODE: "running"}) for each in vhosts),
        "hidden_queues": 0,
        **fields,
    }


def of_limits(**settings):
    """Return the severities of the rule about limits, and whether it is inconclusive."""
    window = Window.empty("shop")
    for seconds in range(0, 41, 5):
        taken = snapshot(seconds, **limited(seconds, **settings))
        known = Part(value=JOINED, at=moment(seconds))
        window = window.add(replace(taken, prometheus=known, **dict.fromkeys(CLIENT_LISTS, Part())))
    result, rule = look(window), "connection-limit-reached"
    said = [each.severity.value for each in of_rule(result, rule)]
    return said, [gap.reason for gap in result.inconclusive if gap.rule == rule]


@pytest.mark.parametrize(
    ("settings", "said", "gaps"),
    [
        ({"value": 200}, [], []),
        ({"value": 200, "vhosts": ("shop", "/")}, [], []),
        ({"value": 200, "scope": "user", "name": "max-channels"}, [], []),
        ({"value": 41}, ["warning"], []),
        ({"value": 40}, ["warning"], []),
        ({"value": 41, "vhosts": ("shop", "/")}, [], ["no_client_lists"]),
        ({"value": 41, "scope": "user"}, [], ["no_client_lists"]),
        ({"value": 41, "hidden_queues": 3}, [], ["no_client_lists"]),
        ({"value": -1}, [], []),
    ],
    ids=["far", "far in one", "far of a user", "near", "full", "in one of two", "of a user", "others", "unlimited"],
)
def test_a_limit_is_compared_with_all_connections_of_the_cluster(settings, said, gaps):
    """Nobody has more; and the only virtual host has them all. Anything else is left open."""
    assert (said, gaps) == of_limits(**settings)


def test_one_look_shows_loops():
    """Its two readings do not tell whether all came and went at once, so it is information."""
    window = Window.empty("shop")
    for seconds in (0, 8):
        taken = snapshot(seconds, overview=totals(seconds, connected=2.0 * seconds, opened=90 * seconds))
        known = Part(value=JOINED, at=moment(seconds))
        window = window.add(replace(taken, prometheus=known, **dict.fromkeys(CLIENT_LISTS, Part())))
    result = look(window, thresholds=Thresholds.brief())

    assert ["channel-churn", "connection-churn"] == named(result)
    assert {"info"} == {each.severity.value for each in flat(result.findings) if each.rule in RULES}
