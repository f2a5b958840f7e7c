"""Handmade captures: TCP segments between a client and a broker, as tcpdump writes them."""

import struct

from pika import frame, spec

CLIENT, BROKER = (("127.0.0.1", 40000), ("127.0.0.1", 5672))
HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
SYN, ACK = 0x02, 0x10


def packet(at, source, target, seq, data=b"", flags=ACK):
    """One record of a capture; `at` in nanoseconds."""
    tcp = struct.pack(">HHIIBBHHH", source[1], target[1], seq % (1 << 32), 0, 5 << 4, flags, 65535, 0, 0) + data
    addresses = b"".join(bytes(int(part) for part in side[0].split(".")) for side in (source, target))
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + addresses
    raw = bytes(12) + b"\x08\x00" + ip + tcp
    return struct.pack("<IIII", at // 1_000_000_000, at % 1_000_000_000, len(raw), len(raw)) + raw


class Talk:
    """A conversation between client and broker, built step by step; `capture` returns it as a file."""

    def __init__(self, client_first=1000, broker_first=5000):
        self._next = {CLIENT: client_first, BROKER: broker_first}
        self.capture = HEAD
        for side in (CLIENT, BROKER):
            self._add(0, side, b"", SYN)
            self._next[side] += 1
        self.client(0, b"AMQP\x00\x00\x09\x01")
        self.client(0, method(spec.Channel.Open()))
        self.client(0, method(spec.Confirm.Select()))

    def client(self, at, data):
        """The client sends bytes in one segment."""
        self._say(at, CLIENT, data)

    def broker(self, at, data):
        """The broker sends bytes in one segment."""
        self._say(at, BROKER, data)

    def again(self, at, data):
        """The client sends its last bytes again."""
        self._next[CLIENT] -= len(data)
        self.client(at, data)

    def swapped(self, at, first, second):
        """The client sends two segments, which arrive in reverse order."""
        start = self._next[CLIENT]
        self._next[CLIENT] = start + len(first)
        self._add(at, CLIENT, second, ACK)
        self._next[CLIENT] = start
        self._add(at + 1, CLIENT, first, ACK)
        self._next[CLIENT] = start + len(first) + len(second)

    def _say(self, at, side, data):
        self._add(at, side, data, ACK)
        self._next[side] += len(data)

    def _add(self, at, side, data, flags):
        other = BROKER if side == CLIENT else CLIENT
        self.capture += packet(at, side, other, self._next[side], data, flags)


def method(what, channel=1):
    """The bytes of a method."""
    return frame.Method(channel, what).marshal()


def publish(body=b"x" * 64, key="q", channel=1):
    """The bytes of a publish."""
    return (
        method(spec.Basic.Publish(exchange="", routing_key=key), channel)
        + frame.Header(channel, len(body), spec.BasicProperties()).marshal()
        + frame.Body(channel, body).marshal()
    )


def ack(tag, *, multiple=False, channel=1):
    """The bytes of an ack."""
    return method(spec.Basic.Ack(tag, multiple), channel)


def nack(tag, *, multiple=False, channel=1):
    """The bytes of a nack."""
    return method(spec.Basic.Nack(tag, multiple, requeue=False), channel)
