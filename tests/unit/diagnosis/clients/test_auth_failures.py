import pytest

from ackscope.topology import AuthAttempts
from tests.unit.diagnosis.clients.loops import reconnecting
from tests.unit.diagnosis.pictures import NODE, film, found, look, only, queue, stats, text


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
