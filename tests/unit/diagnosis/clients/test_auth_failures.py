from dataclasses import replace

import pytest

from ackscope.topology import AuthAttempts
from tests.unit.diagnosis.clients.loops import reconnecting
from tests.unit.diagnosis.pictures import NODE, WALL, channel, connection, film, found, look, only, queue, stats, text


def refusing(t, *, failed=0.5, total=None, protocol="amqp091", until=1e9, node=NODE):
    """A node with this many refused logins a second."""
    done = int(failed * min(t, until))
    every = done if total is None else int(total * t)
    counts = AuthAttempts(node=node, protocol=protocol, total=100 + every, succeeded=100 + every - done, failed=done)
    return {"auth": (counts,)}


def test_refused_logins_are_a_warning_when_they_are_many():
    """More than five, and a fifth of all."""
    finding = only(look(film(refusing, until=30)))

    assert ("auth-failures", "warning", NODE) == (finding.rule, finding.severity, finding.subject.name)
    expected = {"failed": 15, "logins": 15, "failed_share": 1.0, "interval_seconds": 30.0, "protocol": "amqp091"}
    assert expected == {key: finding.facts[key] for key in expected}
    assert ("refused", 15) == (finding.evidence[0].key, finding.evidence[0].value)


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: refusing(t, failed=0.15),
        lambda t: refusing(t, failed=0.5, total=10),
        lambda t: refusing(t, until=10),
    ],
    ids=["few", "a small share", "over"],
)
def test_less_is_information(frame):
    """Examples are a scanner, a mistyped password, or a client that was fixed."""
    assert [("auth-failures", "info", NODE)] == found(look(film(frame, until=30)))


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: refusing(t, failed=0, total=5),
        lambda t: refusing(t, failed=0.05),
        lambda t: refusing(t, protocol="http"),
        lambda _t: {"auth": (AuthAttempts(node=NODE, protocol="amqp091"),)},
    ],
    ids=["none", "one mistake", "the management API", "unknown"],
)
def test_few_refused_logins_are_not_reported(frame):
    """Logins of the exporter over HTTP show as failed polls."""
    assert [] == found(look(film(frame, until=30)))


def test_counters_are_not_compared_across_a_restart():
    """Counters that fell belong to a restarted node."""

    def frame(t):
        return {"auth": refusing(40)["auth"]} if t < 20 else {"auth": refusing(0)["auth"]}

    assert [] == found(look(film(frame, until=40)))


def test_a_client_that_is_listed_has_logged_in():
    """That it reconnects has nothing to do with the logins of others that are refused."""
    verdict = look(film(lambda t: {**reconnecting(t), **refusing(t)}, until=60))

    assert ["auth-failures", "connection-churn"] == sorted(each.rule for each in verdict.findings)


def rotated(t, *, changed=20.0, left=35.0, rate=0.3, consumers=0, **fields):
    """A password is changed at some moment; consumers that restart are refused, the last one leaves later."""
    refused = int(rate * max(0.0, t - changed))
    counts = AuthAttempts(node=NODE, protocol="amqp091", total=90 + refused, succeeded=90, failed=refused)
    waiting = int(5 * max(0.0, t - left))
    done = int(5 * t) - waiting
    counters = stats(publish=int(5 * t), deliver=done, deliver_get=done, ack=done)
    there = {"messages_ready": waiting, "messages": waiting, "consumers": 2 if t < left else consumers, **fields}
    return {"auth": (counts,), "queues": (queue("rechnung.druck", stats=counters, **there),)}


@pytest.mark.parametrize("rate", [0.1, 0.3, 5.0])
def test_a_queue_that_lost_its_consumers_after_logins_were_refused_is_part_of_it(rate):
    """It is a warning at once, and says so in one finding: no deployment looks like this."""
    verdict = look(film(lambda t: rotated(t, rate=rate), until=75))
    finding = only(verdict)

    assert ("auth-failures", "warning") == (finding.rule, finding.severity)
    assert ["no-consumer"] == [each.rule for each in finding.consequences]
    assert "queue 'rechnung.druck' in vhost '/' lost its consumers since then" in text(finding).summary
    assert 200 == finding.facts["waiting"]


def starved(verdict):
    """Return severity and facts of the finding about the queue, alone or as a consequence."""
    every = [each for finding in verdict.findings for each in (finding, *finding.consequences)]
    return next((each.severity.value, each.facts) for each in every if each.rule == "no-consumer")


@pytest.mark.parametrize(("rate", "left"), [(0.3, 25.0), (1.0, 21.0), (4.0, 40.0)])
def test_a_queue_of_clients_that_are_refused_is_a_warning_at_once(rate, left):
    """No deployment is refused, so there is nothing to wait for."""
    severity, facts = starved(look(film(lambda t: rotated(t, rate=rate, left=left), until=left + 20)))

    assert ("warning", True) == (severity, facts["logins_refused"])


@pytest.mark.parametrize(
    "change", [{"changed": 55.0, "left": 20.0}, {"changed": -300.0}, {"changed": 1e9}], ids=["later", "before", "none"]
)
def test_a_queue_whose_consumers_are_away_for_another_reason_may_be_deployed(change):
    """Refusals that began later, or long before, are those of others."""
    severity, facts = starved(look(film(lambda t: rotated(t, rate=0.5, **change), until=75)))

    assert ("info", False) == (severity, facts["logins_refused"])


@pytest.mark.parametrize(
    ("change", "until"),
    [
        ({"left": 1e9}, 75),
        ({"consumers": 1}, 75),
        ({"changed": 60.0, "left": 20.0}, 75),
        ({"changed": -300.0, "left": 35.0}, 75),
    ],
    ids=["nobody left", "another one came", "left long before", "refused before ackscope watched"],
)
def test_a_queue_whose_consumers_left_for_another_reason_is_not(change, until):
    """Refusals began after it, or they were there before; or somebody consumes."""
    verdict = look(film(lambda t: rotated(t, **change), until=until))
    refusals = [each for each in verdict.findings if each.rule == "auth-failures"]

    assert all(not each.facts["shut_out"] and not each.consequences for each in refusals)


def feed(t, *, rate, left=31.0, back=1e9, user="sensor-gw", protocol="AMQP 0-9-1", beside=(), others=0.0):
    """A publisher whose connection is closed after its password was changed, and its queue with an idle consumer."""
    sent = int(rate * min(t, left))
    here = t < left or t >= back
    name = "10.0.0.8:40000 -> 10.0.0.1:5672"
    mine = connection(name, client_name="gauges", user=user, protocol=protocol, connected_at=WALL)
    connections = (mine,) if here else ()
    channels = (channel(f"{name} (1)", consumer_count=0, user=user, stats=stats(publish=sent)),) if here else ()
    into = sent + int(others * t)
    counters = stats(publish=into, deliver=into, deliver_get=into, ack=into)
    return {
        "connections": (*connections, *beside),
        "channels": channels,
        "queues": (queue("pegel", vhost="fluss", stats=counters),),
    } | ({"connections": tuple(replace(each, vhost="fluss") for each in (*connections, *beside))})


def refused_since(t, *, since=31.0, every=2.0, at_first=4):
    """Refused logins, one each `every` seconds; some were refused long ago."""
    failed = at_first + (1 + int((t - since) / every) if t >= since else 0)
    return {"auth": (AuthAttempts(node=NODE, protocol="amqp091", total=90 + failed, succeeded=90, failed=failed),)}


@pytest.mark.parametrize(("rate", "every"), [(5.0, 2.0), (0.7, 0.3), (60.0, 6.0)])
def test_a_publisher_that_left_when_logins_began_to_be_refused_is_named_with_its_queue(rate, every):
    """It stays so when the readings of its connection are long gone."""
    verdict = look(film(lambda t: {**feed(t, rate=rate), **refused_since(t, every=every)}, until=200))
    finding = only(verdict)

    assert ("auth-failures", "warning") == (finding.rule, finding.severity)
    assert [{"client": "gauges", "user": "sensor-gw", "vhost": "fluss"}] == finding.facts["publishers"]
    assert every == pytest.approx(finding.facts["interval_each"], rel=0.1)
    said = text(finding)
    assert "'gauges' (user 'sensor-gw') left when they began and has not come back" in said.summary
    assert "queue 'pegel' in vhost 'fluss' got no message since" in said.summary
    assert "of all logins" not in said.summary
    assert any("USER is probably 'sensor-gw'" in step.text for step in said.steps)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"back": 60.0}, False),
        ({"left": 150.0}, False),
        ({"left": 5.0}, False),
        ({"beside": (connection("a -> b", client_name="x", user="sensor-gw", connected_at=WALL + 70),)}, False),
        ({"protocol": "Direct 0-9-1", "user": "none"}, False),
        ({"others": 3.0}, True),
    ],
    ids=["came back", "left long after", "left before", "its user logs in", "a link", "its queue is fed by others"],
)
def test_a_publisher_that_is_not_missed_is_not_blamed(change, named):
    """A queue that others feed proves nothing, so it is information about who left."""
    frame = lambda t: {**feed(t, rate=4.0, **change), **refused_since(t, every=8.0, at_first=0)}  # noqa: E731
    (finding,) = (each for each in look(film(frame, until=200)).findings if each.rule == "auth-failures")

    assert bool(finding.facts["publishers"]) is named
    assert not finding.facts["silent"]
    assert named is ("left when they began" in text(finding).summary)


def test_a_publisher_stays_named_when_its_queue_has_been_quiet_for_all_readings():
    """Logins are counted over five minutes, and queues are known for ten."""
    frame = lambda t: {**feed(t, rate=5.0), **refused_since(t, every=2.0)}  # noqa: E731
    finding = only(look(film(frame, until=1200)))

    assert "'gauges' (user 'sensor-gw') left when they began and has not come back" in text(finding).summary


def test_refusals_in_bursts_are_no_steady_rate():
    """A scanner comes and goes; a share of all logins is all that is known."""

    def frame(t):
        failed = 12 * int(t / 60)
        return {"auth": (AuthAttempts(node=NODE, protocol="amqp091", total=50 + failed, succeeded=50, failed=failed),)}

    finding = only(look(film(frame, until=200)))

    assert finding.facts["interval_each"] is None
    assert "of all logins" in text(finding).summary
