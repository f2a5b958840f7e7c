"""Settle latency from captured packets of AMQP 1.0, without a network."""

import struct

from bench.capture.pcap import Segment
from bench.capture.settlements import performative, publishing_links

CLIENT, BROKER = ("127.0.0.1", 40000), ("127.0.0.1", 5672)
SASL, AMQP = b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00"


def framed(body, channel=0):
    """A frame of a session."""
    return struct.pack(">IBBH", 8 + len(body), 2, 0, channel) + body


def listed(code, *fields):
    """A performative with encoded fields."""
    joined = b"".join(fields)
    return b"\x00\x53" + bytes([code, 0xC0, len(joined) + 1, len(fields)]) + joined


def transfer(number, tag, channel=0):
    """A message: handle 0, its delivery id and its tag, and the body after the performative."""
    body = listed(0x14, b"\x43", b"\x52" + bytes([number]), b"\xa0" + bytes([len(tag)]) + tag, b"\x43", b"\x42")
    return framed(body + b"\x00\x53\x75\xa0\x01x", channel)


def disposition(first, last=None, outcome=0x24, channel=0):
    """An answer of the broker to one message or a range."""
    until = b"\x40" if last is None else b"\x52" + bytes([last])
    state = b"\x00\x53" + bytes([outcome]) + b"\x45"
    return framed(listed(0x15, b"\x41", b"\x52" + bytes([first]), until, b"\x41", state), channel)


class Talk:
    """Segments of one connection, in order."""

    def __init__(self):
        self.segments = [
            Segment(0, CLIENT, BROKER, 99, syn=True, data=b""),
            Segment(0, BROKER, CLIENT, 199, syn=True, data=b""),
        ]
        self._next = {CLIENT: 100, BROKER: 200}

    def say(self, at, who, data):
        """Add a segment."""
        whom = BROKER if who is CLIENT else CLIENT
        self.segments.append(Segment(at, who, whom, self._next[who], syn=False, data=data))
        self._next[who] += len(data)


def test_a_message_lasts_from_its_transfer_to_the_disposition_that_covers_it():
    """Ranges settle several; numbers are those of the tags; a rejected message is marked."""
    talk = Talk()
    talk.say(1, CLIENT, SASL + framed(b"\x00\x53\x41\x45"))
    talk.say(2, BROKER, SASL + AMQP)
    talk.say(3, CLIENT, AMQP + framed(b""))
    for number in range(3):
        talk.say(1000 * (number + 1), CLIENT, transfer(number, str(number + 1).encode()))
    talk.say(5000, BROKER, disposition(0, 1) + disposition(2, outcome=0x25))
    (link,) = publishing_links(talk.segments, 5672)

    assert [1, 2, 3] == list(link.messages)
    assert [(1000, 5000), (2000, 5000), (3000, 5000)] == [(it.sent, it.settled) for it in link.messages.values()]
    assert [False, False, True] == [it.nacked for it in link.messages.values()]


def test_a_frame_may_arrive_in_pieces():
    """The message is sent with its last byte."""
    talk, whole = Talk(), transfer(0, b"1")
    talk.say(1, CLIENT, AMQP + whole[:5])
    talk.say(2, CLIENT, whole[5:-1])
    talk.say(3, CLIENT, whole[-1:])
    (link,) = publishing_links(talk.segments, 5672)

    assert (3, None) == (link.messages[1].sent, link.messages[1].settled)


def test_another_protocol_on_the_same_port_is_left_out():
    """The queues of the probe are declared over AMQP 0-9-1."""
    talk = Talk()
    talk.say(1, CLIENT, b"AMQP\x00\x00\x09\x01" + transfer(0, b"1"))

    assert [] == publishing_links(talk.segments, 5672)


def test_what_is_no_transfer_and_no_disposition_is_skipped():
    """Empty frames and frames of SASL too."""
    assert performative(framed(b"")) is None
    assert performative(framed(listed(0x13))) is None
    assert performative(struct.pack(">IBBH", 12, 2, 1, 0) + b"\x00\x53\x41\x45") is None
    assert 7 == performative(disposition(7)).fields[1]
