"""channel-limit-reached: a user has as many channels as allowed; a client of this user reconnects and gets none."""

from dataclasses import replace
from urllib.parse import quote

import pika
import pika.exceptions

from ackscope.errors import BrokerError
from ackscope.findings import Subject
from lab.amqp import connect
from lab.faults.clients.again import PROOF
from lab.faults.fault import Fault, FaultSpec

USER = "fault.channel-limit-reached"
_CHANNELS = 3
_EVERY = 0.5
_NOT_ALLOWED = 530


def inject(fault: Fault) -> None:
    """Create such a user, open all its channels, and connect twice a second to open another one."""
    vhost = quote(fault.address.vhost, safe="")
    fault.ask("PUT", f"/api/users/{USER}", {"password": USER, "tags": ""})
    fault.later(lambda: fault.ask("DELETE", f"/api/users/{USER}"))
    fault.ask("PUT", f"/api/permissions/{vhost}/{USER}", {"configure": "", "write": "", "read": ""})
    fault.ask("PUT", f"/api/user-limits/{USER}/max-channels", {"value": _CHANNELS})
    pool = fault.connect("fault-channel-limit-reached", credentials=pika.PlainCredentials(USER, USER))
    for _ in range(_CHANNELS):
        pool.channel()
    own = replace(fault.address, username=USER, password=USER)
    for times, _ in enumerate(fault.ticks(_EVERY), start=1):
        try:
            connect(own, "fault-channel-limit-reached-2").channel()
        except pika.exceptions.ConnectionClosedByBroker as error:
            if error.reply_code != _NOT_ALLOWED:
                raise BrokerError(f"expected error {_NOT_ALLOWED}, got {error.reply_code}") from None
        else:
            raise BrokerError("the broker opened a channel above the limit")
        if times == PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="channel-limit-reached",
    rule="connection-limit-reached",
    summary="a user has three channels of at most three; a client of this user reconnects twice a second and gets none",
    subject=Subject(kind="connection", name=f"user {USER}"),
    inject=inject,
    apart=True,
)
