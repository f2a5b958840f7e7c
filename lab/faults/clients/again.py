"""What clients do in a loop: try, be refused, try again."""

from collections.abc import Callable

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from ackscope.errors import BrokerError
from lab.faults.fault import Fault

PROOF = 5
"""Times that it must have happened before the fault is announced."""


def refused(fault: Fault, name: str, code: int, act: Callable[[BlockingChannel], object], every: float = 0.25) -> None:
    """Open a channel, do what the broker refuses, and begin anew, until the fault should end.

    Args:
        fault: that is held.
        name: of the connection, which stays.
        code: with which the broker must close each channel, such as 406.
        act: is refused.
        every: seconds from one try to the next.

    Raises:
        BrokerError: the broker took it, or closed the channel for another reason.
    """
    connection = fault.connect(name)
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
