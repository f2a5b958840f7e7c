"""queue-crashed: the process of a classic queue crashes repeatedly, until its supervisor gives up.

The cause is a message from inside the broker that queue processes do not understand.
"""

import time
from urllib.parse import quote

from ackscope.errors import BrokerError
from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.queue-crashed"
_WITHIN = 30.0
_CRASH = """\
{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"{vhost}">>, queue, <<"{queue}">>)),
[begin {{ok, N}} = rabbit_amqqueue:lookup(amqqueue:get_name(Q)),
 catch gen_server2:cast(amqqueue:get_pid(N), fault), timer:sleep(300) end || _ <- lists:seq(1, 12)], ok.
"""


def inject(fault: Fault) -> None:
    """Crash a queue with some messages more often than its supervisor restarts it."""
    fault.make_queue(QUEUE)
    channel = writer(fault, QUEUE)
    for _ in range(5):
        publish(channel, QUEUE)
    # Clients cannot delete a crashed queue until the processes of its virtual host are restarted.
    fault.later(lambda: fault.lab.ctl(0, "restart_vhost", "-p", fault.address.vhost))
    fault.lab.ctl(0, "eval", _CRASH.format(vhost=fault.address.vhost, queue=QUEUE))
    deadline = time.monotonic() + _WITHIN
    for _ in fault.ticks(1.0):
        if fault.ask("GET", f"/api/queues/{quote(fault.address.vhost, safe='')}/{QUEUE}").get("state") == "crashed":
            break
        if time.monotonic() > deadline:
            raise BrokerError(f"queue {QUEUE!r} did not stay crashed")
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="queue-crashed",
    rule="queue-crashed",
    summary="the process of a classic queue crashed so often that the broker no longer restarts it",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    alone=True,
)
