"""The body of a probe message, which holds run, epoch and sequence number."""

import struct
from typing import NamedTuple

_HEAD = struct.Struct(">8s8sIQ")
_MAGIC = b"ackscope"


class PayloadMark(NamedTuple):
    """Content of a message body.

    Attributes:
        run_id: 16 hexadecimal digits, new at each start of the probe process.
        epoch: number of the probe's channel.
        seq: the delivery tag of the message in its epoch.
    """

    run_id: str
    epoch: int
    seq: int


class PayloadWriter:
    """Makes the message bodies of one epoch, all of the same size."""

    def __init__(self, run_id: str, epoch: int, size: int) -> None:
        self._run, self._epoch = bytes.fromhex(run_id), epoch
        self._padding = b"." * (size - _HEAD.size)

    def write(self, seq: int) -> bytes:
        """Return the body of one message."""
        return _HEAD.pack(_MAGIC, self._run, self._epoch, seq) + self._padding


def read(body: bytes) -> PayloadMark | None:
    """Decode the content of a body; None if it is not from a probe."""
    if len(body) < _HEAD.size or not body.startswith(_MAGIC):
        return None
    _, run, epoch, seq = _HEAD.unpack_from(body)
    return PayloadMark(run.hex(), epoch, seq)
