"""A client in a retry loop: the broker refuses a request, and the client tries again."""

from collections.abc import Callable
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from ackscope.errors import BrokerError
from lab.faults.fault import Fault

PROOF = 5
"""Refusals before the fault is announced."""


def refused(
    fault: Fault, name: str, code: int, act: Callable[[BlockingChannel], object], every: float = 0.25, **parameters: Any
) -> None:
    """Open a channel, send a request that the broker refuses, and repeat until the fault should end.

    Args:
        fault: the fault in effect.
        name: name of the connection, which stays open.
        code: reply code with which the broker must close each channel, such as 406.
        act: sends the request.
        every: seconds between attempts.
        **parameters: of `Fault.connect`.

    Raises:
        BrokerError: the broker accepted the request, or closed the channel for another reason.
    """
    connection = fault.connect(name, **parameters)
    for times, _ in enumerate(fault.ticks(every), start=1):
        try:
            act(connection.channel())
        except ChannelClosedByBroker as error:
            if error.reply_code != code:
                raise BrokerError(f"expected error {code}, got {error.reply_code} {error.reply_text}") from None
        else:
            raise BrokerError(f"expected error {code}, but the broker accepted it")
        if times == PROOF:
            fault.announce()
