"""Confirms and deliveries from captured packets of the stream protocol, without a network."""

import struct

from bench.capture.appends import confirmed_appends, delivered_appends
from probes.payload import PayloadWriter
from tests.unit.bench.test_settlements import BROKER, CLIENT, Talk

PORT = BROKER[1]
WRITER = PayloadWriter("0" * 16, 1, 32)


def framed(key, content):
    """A frame of the first version."""
    return struct.pack(">IHH", 4 + len(content), key, 1) + content


def publish(*numbers):
    """A publish of messages whose bodies tell their numbers."""
    bodies = [(number, b"\x00Su\xa0\x20" + WRITER.write(number)) for number in numbers]
    content = b"".join(struct.pack(">QI", number, len(body)) + body for number, body in bodies)
    return framed(2, struct.pack(">BI", 0, len(numbers)) + content)


def confirm(*numbers):
    """A confirm of several messages."""
    return framed(3, struct.pack(f">BI{len(numbers)}Q", 0, len(numbers), *numbers))


def deliver(*bodies):
    """A chunk of messages."""
    data = b"".join(struct.pack(">I", len(body)) + body for body in bodies)
    head = struct.pack(">BBBHIQQQIIII", 0, 80, 0, len(bodies), len(bodies), 0, 1, 0, 0, len(data), 0, 0)
    return framed(8, head + data)


def talk():
    """Of three messages two are confirmed together and one is refused; two are delivered, one of them twice."""
    said = Talk()
    said.say(1000, CLIENT, framed(1, b"\0") + publish(1))
    said.say(2000, CLIENT, publish(2, 3))
    whole = confirm(1, 2)
    said.say(3000, BROKER, whole[:9])
    said.say(4000, BROKER, whole[9:] + framed(4, struct.pack(">BIQH", 0, 1, 3, 2)))
    said.say(5000, BROKER, deliver(b"of another client", WRITER.write(1), WRITER.write(2)))
    said.say(6000, BROKER, deliver(WRITER.write(2)))
    return said.segments


def test_a_message_lasts_from_its_publish_to_the_confirm_that_has_its_number():
    """A frame counts when it is whole; an error of the broker is a nack."""
    (channel,) = confirmed_appends(talk(), PORT)

    found = {tag: (each.sent, each.settled, each.nacked) for tag, each in channel.messages.items()}
    assert {1: (1000, 4000, False), 2: (2000, 4000, False), 3: (2000, 4000, True)} == found


def test_a_message_is_delivered_by_the_first_chunk_that_has_it():
    """Messages of other clients are none of the probe."""
    (channel,) = delivered_appends(talk(), PORT)

    assert {1: 5000, 2: 5000, 3: None} == {tag: each.settled for tag, each in channel.messages.items()}
