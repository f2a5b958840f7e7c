"""Clients of MQTT with one client id, which end each other's connection."""

from dataclasses import replace

import pytest

from ackscope.findings import flat
from ackscope.snapshot import Overview
from diagnosis.brief import diagnose_briefly
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, full_text, look, queue, stats, text


def session(
    *, every=1.7, client="pump-7", quality="qos1", lists=0.0, hosts=("10.0.3.1",), attended=1.0, until=1e9, others=0.0
):
    """A session whose connection is replaced every so often, and is listed once it is `lists` seconds old.

    `attended` is the share of its time in which it is connected; `others` connections a second open and close.
    """
    name = f"mqtt-subscription-{client}{quality}"

    def frame(t):
        number, inside = divmod(min(t, until), every)
        inside += max(0.0, t - until)
        here = inside <= attended * every
        host = hosts[int(number) % len(hosts)]
        peer = f"{host}:{40000 + int(number)} -> 10.0.0.1:1883"
        listed = here and (inside >= lists)
        ended = int(number) + int(others * t)
        churn = {"connection_created": 5 + ended, "connection_closed": ended}
        return {
            "overview": Overview(
                rabbitmq_version="4.3.6", statistics=True, stats=stats(publish=int(3 * t)), churn=churn, connections=9
            ),
            "queues": (queue(name, consumers=int(here)),),
            "consumers": (consumer(name, tag="mqtt", channel_name=None, connection_name=peer),) if listed else (),
            "channels": (channel("10.0.9.9:1 -> b (1)", consumer_count=0),),
            "connections": (
                *(
                    (connection(peer, protocol="MQTT 3-1-1", client_name=client, client_id=client, peer_host=host,
                                peer_port=40000 + int(number)),)
                    if listed
                    else ()
                ),
                connection("10.0.9.9:1 -> b", client_name="backend"),
            ),
        }  # fmt: skip

    return frame


def about(result):
    """The finding of consumer-flapping, anywhere; None without one."""
    return next((each for each in flat(result.findings) if each.rule == "consumer-flapping"), None)


@pytest.mark.parametrize("every", [1.7, 3.1, 4.3])
@pytest.mark.parametrize("quality", ["qos0", "qos1"])
def test_a_session_that_is_consumed_by_connections_that_are_never_listed_is_found(every, quality):
    """All that is known is its queue, and that connections open and close."""
    finding = about(look(film(session(every=every, lists=5.0, quality=quality, client="feed/ä 2"), until=100)))

    assert ("warning", "feed/ä 2") == (finding.severity, finding.facts["session"]["client_id"])
    assert "MQTT client id 'feed/ä 2' in vhost '/' connects again and again" in text(finding).summary
    assert "one device reconnects" in text(finding).summary
    assert "No connection lived long enough" in full_text(finding)


def test_two_hosts_are_probably_two_devices():
    """Their addresses are named."""
    finding = about(look(film(session(every=4.0, hosts=("10.0.3.1", "10.0.4.8")), until=100)))

    assert "warning" == finding.severity
    assert ["10.0.3.1", "10.0.4.8"] == finding.facts["session"]["hosts"]
    assert "Two devices probably use this id" in text(finding).summary
    assert "from 10.0.3.1, 10.0.4.8, and each connection ends the previous one" in text(finding).summary


def test_one_host_leaves_it_open():
    """Two programs on one host look like one that reconnects."""
    finding = about(look(film(session(every=4.0), until=100)))

    assert "Two devices use this id, or one device reconnects" in text(finding).summary
    assert "All connections that were listed come from 10.0.3.1" in full_text(finding)


def test_one_look_says_what_it_becomes():
    """A reconnect looks the same at first."""
    window = film(session(lists=5.0), until=66, every=6.0, start=60)
    finding = about(diagnose_briefly(window, (), replace(window.latest.taken)))

    assert ("info", "warning") == (finding.severity, finding.if_it_lasts)


@pytest.mark.parametrize(
    "frame",
    [
        session(every=15.0, attended=0.1, others=0.7),
        session(every=15.0, attended=0.5, others=0.7),
        session(every=50.0, until=60, others=0.7),
        session(every=1000.0, others=2.0),
        session(every=1000.0, lists=5.0, others=2.0),
    ],
    ids=["wakes and leaves", "half of the time", "reconnects once", "stays", "stays, listed later"],
)
def test_others_are_left_alone(frame):
    """While other clients connect and disconnect."""
    assert [] == [until for until in (20, 40, 70, 100) if about(look(film(frame, until=until))) is not None]
