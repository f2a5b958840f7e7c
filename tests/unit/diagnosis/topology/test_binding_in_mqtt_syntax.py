"""Bindings with a key in the syntax of MQTT: no message of an MQTT client has such a routing key."""

import pytest

from ackscope.topology import Binding, Bindings, Exchange
from tests.unit.diagnosis.pictures import WALL, connection, film, full_text, look, queue, stats, text

RULE = "binding-in-mqtt-syntax"
PEERS = tuple(f"10.0.0.{number}:50001 -> 10.0.0.1:1883" for number in range(7, 12))


def bound(key, to="telemetry", source="amq.topic", vhost="/", kind="queue"):
    """A binding of the exchange that MQTT clients publish to."""
    return Binding(vhost=vhost, source=source, destination=to, destination_type=kind, routing_key=key)


def device(name=PEERS[0], *, received=0, sent=0, **fields):
    """An MQTT client that is connected for ten minutes."""
    known = {"client_name": "device-7", "protocol": "MQTT 3-1-1", "channels": None, "connected_at": WALL - 600}
    return connection(name, **{**known, "recv_oct": received, "send_oct": sent, **fields})


def frame(t, *keys, rate=15.0, bindings=(), clients=None, counters=None, exchange="amq.topic", vhost="/"):
    """A client publishes so many messages of 22 bytes a second, and gets 4 bytes for each."""
    own = device(received=int(22 * rate * t), sent=4 * int(rate * t), vhost=vhost)
    return {
        "bindings": Bindings(listed=(*(bound(key, vhost=vhost) for key in keys), *bindings)),
        "exchanges": (Exchange(vhost=vhost, name=exchange, type="topic", stats=counters or stats()),),
        "queues": (queue("telemetry", vhost=vhost, stats=stats()),),
        "connections": (own,) if clients is None else clients(t),
    }


def reported(made, until=40):
    """The findings of this rule."""
    return [each for each in look(film(made, until=until)).findings if each.rule == RULE]


@pytest.mark.parametrize(
    ("key", "correct"),
    [
        ("plant/+/temp", "plant.*.temp"),
        ("plant/#", "plant.#"),
        ("/eu/+", ".eu.*"),
        ("+/state", "*.state"),
        ("plant/7/temp", "plant.7.temp"),
        ("+", "*"),
    ],
)
@pytest.mark.parametrize(("rate", "vhost"), [(15.0, "/"), (0.2, "iot")])
def test_a_key_in_mqtt_syntax_is_reported_with_the_right_one(key, correct, rate, vhost):
    """The client publishes, and its acknowledgements say nothing of the queue."""
    (finding,) = reported(lambda t: frame(t, key, rate=rate, vhost=vhost))

    assert ("warning", "amq.topic", vhost) == (finding.severity.value, finding.subject.name, finding.subject.vhost)
    assert [(key, correct)] == [(each["routing_key"], each["correct_key"]) for each in finding.facts["mqtt_bindings"]]
    assert (("device-7",), (PEERS[0],)) == (finding.involved.clients, finding.involved.connections)
    assert f'{{"routing_key": "{correct}"}}' in (text(finding).steps[0].command or "")


def test_all_wrong_bindings_of_an_exchange_are_one_finding():
    """To queues and to exchanges."""
    more = (bound("a/+", to="x.in", kind="exchange"), bound("alarm.*", to="alarms"))
    (finding,) = reported(lambda t: frame(t, "plant/+/temp", bindings=more))

    assert ["telemetry", "x.in"] == [each["destination"] for each in finding.facts["mqtt_bindings"]]
    assert ["telemetry"] == [each.name for each in finding.involved.queues]
    assert "'a/+' to exchange 'x.in'" in full_text(finding)


def test_the_setting_mqtt_exchange_is_seen_by_subscriptions():
    """Subscriptions are bindings of that exchange, in any virtual host."""
    session = bound("plant.*", to="mqtt-subscription-panelqos1", source="iot.topic", vhost="other")
    wrong = bound("plant/+", source="iot.topic")
    (finding,) = reported(lambda t: frame(t, bindings=(session, wrong), exchange="iot.topic"))

    assert "iot.topic" == finding.subject.name
    assert [] == reported(lambda t: frame(t, "plant/+", bindings=(session,)))


def test_clients_that_do_not_publish_make_it_information():
    """They are sent messages and acknowledge them, or only ping."""

    def others(t):
        return (device(received=40 * int(t), sent=300 * int(t)), device(PEERS[1], received=2 * int(t), sent=2 * int(t)))

    (finding,) = reported(lambda t: frame(t, "plant/+/temp", clients=others))

    assert ("info", ()) == (finding.severity.value, finding.involved.clients)


@pytest.mark.parametrize(
    "other",
    [
        lambda t: frame(t, "plant.*.temp", "plant.#", "#", "*.7.temp"),
        # AMQP clients publish keys with "/" to the same exchange.
        lambda t: frame(t, "plant/7/temp", counters=stats(publish_in=int(9 * t), publish_out=int(9 * t))),
        lambda t: frame(t, "eu/west.#", "eu/west.*.temp", counters=stats(publish_in=40)),
        lambda t: frame(
            t,
            "plant/7/temp",
            clients=lambda t: (
                device(received=int(99 * t)),
                connection(PEERS[2], protocol="AMQP 1-0", client_name="erp"),
            ),
        ),
        # The right binding was added beside the wrong one.
        lambda t: frame(t, "plant/+/temp", "plant.*.temp"),
        lambda t: frame(t, "plant/+/temp", "plant.#"),
        # Nobody uses MQTT there.
        lambda t: frame(t, "plant/+/temp", clients=lambda _: (connection(PEERS[2]),)),
        lambda t: frame(t, "plant/+/temp", clients=lambda _: (device(vhost="elsewhere"),)),
        lambda t: frame(t, bindings=(bound("plant/+/temp", source="orders"),)),
    ],
    ids=["right keys", "by AMQP", "a key of AMQP", "by AMQP 1.0", "beside", "covers", "no MQTT", "vhost", "exchange"],
)
def test_bindings_that_match_or_are_for_others_are_not_reported(other):
    """Each differs in one thing."""
    assert [] == reported(other)
