"""Connections that are never listed: the logins show their protocol, and so what they can be blamed for."""

from dataclasses import replace

import pytest

from ackscope.findings import flat
from ackscope.topology import AuthAttempts, Feature
from tests.unit.diagnosis.clients.loops import churning, reconnecting, steady
from tests.unit.diagnosis.pictures import NODE, connection, film, look, queue, stats, text

DENIED = Feature(name="global_qos", deprecated=True, state="denied", stage="denied_by_default")


def logins(t, since=0.0, **rates):
    """Accepted logins over each protocol; the broker lists none before its first."""
    counted = {name: int(rate * max(0.0, t - since)) for name, rate in rates.items()}
    return tuple(
        AuthAttempts(node=NODE, protocol=name, total=done, succeeded=done, failed=0)
        for name, done in {"http": 30 + int(3 * t), **counted}.items()
        if done
    )


def brief(t, *, rates, name="freight", kind="classic", channels=0.0, features=(), **fields):
    """Connections too brief to be listed, beside a queue that grows without a consumer."""
    there, consuming = steady(t)
    done = int(sum(rates.values()) * t)
    moved = stats(deliver_get=int(10 * t), ack=int(10 * t))
    waiting = int(4 * t)
    return {
        "overview": churning(t, connections=done, channels=int(channels * done), stats=moved),
        "connections": (there,),
        "channels": (consuming,),
        "queues": (queue(name, type=kind, consumers=0, messages_ready=waiting, stats=stats(publish=waiting)),),
        "auth": logins(t, **rates),
        "features": features,
        **fields,
    }


def churn_of(verdict):
    """The finding about the connections, wherever it stands; None without one."""
    return next((each for each in flat(verdict.findings) if each.rule == "connection-churn"), None)


@pytest.mark.parametrize("name", ["freight", "orders.v2"])
@pytest.mark.parametrize(
    "rates",
    [{"mqtt": 1.0}, {"mqtt": 0.4}, {"mqtt": 12.0, "amqp091": 0.2}, {"mqtt": 2.0, "amqp091": 0.1, "stream": 0.1}],
)
def test_clients_of_mqtt_are_called_so_and_starve_no_queue(rates, name):
    """They consume from the queues of their sessions, and no counter has what they publish."""
    verdict = look(film(lambda t: brief(t, rates=rates, name=name, features=(DENIED,)), until=90))
    finding = churn_of(verdict)
    said = text(finding)

    assert ("info", "mqtt", [], True) == (
        finding.severity, finding.facts["protocol"], finding.facts["starved"], finding.facts["mqtt"],
    )  # fmt: skip
    assert said.summary.startswith("Unknown clients of MQTT connect and disconnect")
    assert "as two devices with one client id do" in said.summary
    assert "same client id" in said.cause
    assert "prefetch" not in said.cause
    assert any("duplicate" in (step.command or "") for step in said.steps)
    assert not any("AMQP" in step.text or "AMQP" in (step.command or "") for step in said.steps)
    assert [name] == [each.subject.name for each in verdict.findings if each.rule == "no-consumer"]


@pytest.mark.parametrize(
    "auth", [lambda t: logins(t, amqp091=1.0, mqtt=0.05), lambda _: (), lambda t: logins(t, amqp091=0.1)],
    ids=["over AMQP", "unknown", "fewer logins than connections"],
)  # fmt: skip
def test_clients_that_can_consume_still_starve_a_queue(auth):
    """As far as is known, it is theirs."""
    verdict = look(film(lambda t: brief(t, rates={"amqp091": 1.0}, auth=auth(t)), until=90))
    finding = churn_of(verdict)

    assert ("warning", ["freight"], False) == (finding.severity, finding.facts["starved"], finding.facts["mqtt"])
    assert "prefetch" not in text(finding).cause


def test_a_slow_loop_of_another_protocol_is_not_reported():
    """The limit is one connection a second."""
    assert None is churn_of(look(film(lambda t: brief(t, rates={"amqp091": 0.4}, queues=()), until=90)))


def test_in_a_mixture_only_the_connections_that_can_consume_wait_in_vain():
    """Half of them are of MQTT."""
    verdict = look(film(lambda t: brief(t, rates={"mqtt": 1.0, "amqp091": 0.5}), until=90))
    finding = churn_of(verdict)

    assert (None, ["freight"]) == (finding.facts["protocol"], finding.facts["starved"])
    assert finding.facts["in_vain"] == pytest.approx(finding.seen_seconds * 0.5, rel=0.2)
    assert {"mqtt", "amqp091"} == {each.facts["protocol"] for each in finding.evidence if each.key == "logins"}


def test_a_node_that_was_not_read_before_says_nothing():
    """Its counters may be old."""
    old = AuthAttempts(node="rabbit@two", protocol="mqtt", total=9000, succeeded=9000, failed=0)
    auth = lambda t: (*logins(t, amqp091=1.0), *((old,) if t > 50 else ()))  # noqa: E731
    finding = churn_of(look(film(lambda t: brief(t, rates={"amqp091": 1.0}, auth=auth(t)), until=90)))

    assert (None, False) == (finding.facts["protocol"], finding.facts["mqtt"])


@pytest.mark.parametrize("client", ["gate-3", "hall/12"])
def test_an_mqtt_client_that_was_listed_once_is_named(client):
    """By its client id."""

    def frame(t):
        made = brief(t, rates={"mqtt": 1.0})
        seen = connection("10.0.3.1:4000 -> 10.0.0.1:1883", protocol="MQTT 3-1-1", client_name=client, client_id=client)
        return {**made, "connections": (*made["connections"], *((seen,) if 74 < t < 81 else ()))}

    finding = churn_of(look(film(frame, until=90)))

    assert [client] == finding.facts["seen_ids"]
    assert f"'{client}' was listed and is gone" in text(finding).cause


@pytest.mark.parametrize(
    ("protocol", "starved"), [("MQTT 5-0", []), ("Web MQTT 3-1-1", []), ("AMQP 1-0", []), ("AMQP 0-9-1", ["freight"])]
)
def test_a_listed_client_whose_messages_are_not_counted_starves_no_queue(protocol, starved):
    """It may have moved some in each connection."""

    def frame(t):
        made = brief(t, rates={"amqp091": 1.0})
        mine = reconnecting(t, client="belt-4")["connections"]
        return {**made, "connections": tuple(replace(each, protocol=protocol) for each in mine)}

    finding = churn_of(look(film(frame, until=90)))

    assert ("belt-4", starved) == (finding.facts["client"], finding.facts["starved"])


@pytest.mark.parametrize("rates", [{"mqtt": 1.0}, {"amqp091": 2.0}])
@pytest.mark.parametrize("began", [0.0, 60.0])
def test_refused_logins_are_no_reason_of_connections_that_open(rates, began):
    """A refused one is never counted as opened."""

    def frame(t):
        made = brief(t, rates=rates, queues=())
        refused = int(max(0.0, t - began))
        before = {each.protocol: each for each in made["auth"]}
        amqp = before.get("amqp091", AuthAttempts(node=NODE, protocol="amqp091", total=0, succeeded=0, failed=0))
        amqp = replace(amqp, total=amqp.total + refused, failed=refused)
        ended = {**made["overview"].churn}
        ended["connection_closed"] += refused
        auth = tuple({**before, "amqp091": amqp}.values())
        return {**made, "auth": auth, "overview": replace(made["overview"], churn=ended)}

    verdict = look(film(frame, until=120))

    assert {"auth-failures", "connection-churn"} == {each.rule for each in verdict.findings}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "quorum", "channels": 1.0, "features": ()}, True),
        ({"kind": "quorum", "channels": 1.0, "features": (DENIED,)}, False),
        ({"kind": "quorum", "channels": 0.0, "features": ()}, False),
        ({"kind": "classic", "channels": 1.0, "features": ()}, False),
    ],
    ids=["a quorum queue", "denied, so accepted for each consumer", "no channel asks for it", "a classic queue"],
)
def test_a_shared_prefetch_is_a_candidate_only_where_the_broker_refuses_it(fields, said):
    """Quorum queues refuse it while it is permitted."""

    def frame(t):
        made = brief(t, rates={"amqp091": 1.0}, **fields)
        return {**made, "overview": replace(made["overview"], rabbitmq_version="3.13.7")}

    finding = churn_of(look(film(frame, until=90)))

    assert ["freight"] == finding.facts["starved"]
    assert said is ("540" in text(finding).cause)
