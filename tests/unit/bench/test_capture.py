"""Confirm latencies from captured packets."""

import pytest
from pika import spec

from ackscope.errors import DataError
from bench.capture.confirms import publishing_channels
from bench.capture.pcap import segments
from tests.unit.bench.packets import BROKER, HEAD, Talk, ack, method, nack, packet, publish


def read(talk):
    """Return the only channel of a conversation."""
    (channel,) = publishing_channels(segments(talk.capture), BROKER[1])
    return channel


def latencies(talk):
    """Return the nanoseconds from publish to ack by delivery tag."""
    return {tag: each.settled and each.settled - each.sent for tag, each in read(talk).messages.items()}


def test_each_ack_settles_its_publish():
    """The tag counts publishes since confirm.select; the routing key is the queue's name."""
    talk = Talk()
    talk.client(1000, publish(key="orders"))
    talk.client(2000, publish(key="orders"))
    talk.broker(5000, ack(2))
    talk.broker(9000, ack(1))

    assert {1: 8000, 2: 3000} == latencies(talk)
    assert "orders" == read(talk).key


def test_an_ack_of_many_settles_all_that_are_open():
    """Messages that were settled alone before keep their own time."""
    talk = Talk()
    for at in (1000, 2000, 3000, 4000):
        talk.client(at, publish())
    talk.broker(5000, ack(2))
    talk.broker(7000, ack(3, multiple=True))

    assert {1: 6000, 2: 3000, 3: 4000, 4: None} == latencies(talk)


def test_a_nack_settles_too():
    """A nack is distinguished from an ack."""
    talk = Talk()
    talk.client(1000, publish())
    talk.client(1500, publish())
    talk.broker(5000, nack(1))
    talk.broker(6000, ack(2))

    assert [True, False] == [each.nacked for each in read(talk).messages.values()]


def test_frames_are_whole_when_their_last_byte_is():
    """A publish split over segments counts from the last segment; frames of one segment share its time."""
    talk = Talk()
    first, second = publish(), publish()
    talk.client(1000, first + second[:30])
    talk.client(2500, second[30:])
    reply = ack(1) + ack(2)
    talk.broker(5000, reply[:10])
    talk.broker(6000, reply[10:])

    assert {1: 5000, 2: 3500} == latencies(talk)


def test_bytes_sent_twice_count_once():
    """A retransmission changes nothing."""
    talk = Talk()
    talk.client(1000, publish())
    talk.again(1800, publish())
    talk.broker(5000, ack(1))

    assert {1: 4000} == latencies(talk)


def test_segments_out_of_order_are_put_in_order():
    """Early bytes are read once the gap is filled."""
    talk = Talk()
    whole = publish()
    talk.swapped(1000, whole[:20], whole[20:])
    talk.broker(5000, ack(1))

    assert {1: 3999} == latencies(talk)


def test_sequence_numbers_may_wrap():
    """A connection that begins just below 2**32."""
    talk = Talk(client_first=(1 << 32) - 60, broker_first=(1 << 32) - 3)
    talk.client(1000, publish())
    talk.client(2000, publish())
    talk.broker(5000, ack(2, multiple=True))

    assert {1: 4000, 2: 3000} == latencies(talk)


def test_a_channel_opened_again_counts_anew():
    """Tags restart with the channel."""
    talk = Talk()
    talk.client(1000, publish(key="first"))
    talk.broker(2000, ack(1))
    talk.client(3000, method(spec.Channel.Open()))
    talk.client(3000, method(spec.Confirm.Select()))
    talk.client(4000, publish(key="second"))
    talk.broker(9000, ack(1))
    channels = publishing_channels(segments(talk.capture), BROKER[1])

    assert {"first": 1000, "second": 5000} == {
        channel.key: channel.messages[1].settled - channel.messages[1].sent for channel in channels
    }


def test_a_connection_opened_before_the_capture_is_left_out():
    """Its tags cannot be known."""
    lone = HEAD + packet(0, ("127.0.0.1", 1), BROKER, 77, publish())

    assert [] == publishing_channels(segments(lone), BROKER[1])


def test_a_packet_cut_short_at_the_end_is_left_out():
    """The capture ended while the packet was written."""
    talk = Talk()
    whole = list(segments(talk.capture))

    assert whole[:-1] == list(segments(talk.capture[:-1]))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "the capture is empty; does tcpdump see this interface?"),
        (
            b"\x0a\x0d\x0d\x0a" + bytes(40),
            "the capture has format 0xa0d0d0a and link type 0; expected pcap with Ethernet frames",
        ),
    ],
)
def test_another_file_is_refused_in_one_line(raw, said):
    """It says what was expected."""
    with pytest.raises(DataError) as error:
        list(segments(raw))

    assert said == str(error.value)
