"""`python -m lab.busy --amqp URL --queues N --rate R`: traffic on some queues until SIGTERM or the end of stdin.

R messages a second are spread over the first N queues of `lab.many`, and consumed by a few channels. Every tenth of
these queues has no consumer and holds a backlog instead, so that the queues differ.
"""

import argparse
import sys
import threading
import time

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.cli import Parser
from lab.amqp import connect, parse_lab_address
from lab.many import names
from lab.program import end_event, main

_BACKLOG = 50
_CONSUMERS_PER_CHANNEL = 20
_BODY = b"x" * 200


def _arguments() -> argparse.Namespace:
    parser = Parser(prog="lab.busy", description="Publish to and consume from some of many queues.")
    parser.add_argument("--amqp", required=True, metavar="URL", help="as in amqp://user:password@host:5672/vhost")
    parser.add_argument("--queues", type=int, default=200, metavar="N", help="number of busy queues (default 200)")
    parser.add_argument(
        "--rate", type=float, default=50, metavar="R", help="messages per second, all queues together (default 50)"
    )
    return parser.parse_args()


def _consume(channel: BlockingChannel, queues: list[str]) -> None:
    channel.basic_qos(prefetch_count=20)
    for queue in queues:
        channel.basic_consume(queue, lambda channel, method, _properties, _body: channel.basic_ack(method.delivery_tag))


def _publish(channel: BlockingChannel, queues: list[str], rate: float, ending: threading.Event) -> None:
    due, number = time.monotonic(), 0
    while not ending.is_set():
        channel.basic_publish("", queues[number % len(queues)], _BODY)
        number += 1
        due = max(due + 1 / rate, time.monotonic() - 1)
        channel.connection.sleep(max(0.0, due - time.monotonic()))


def _run() -> int:
    args = _arguments()
    address, ending = parse_lab_address(args.amqp), end_event()
    queues = names(args.queues)
    idle, busy = queues[::10], [name for number, name in enumerate(queues) if number % 10]
    consuming, publishing = connect(address, "busy-consumers"), connect(address, "busy-publisher")
    for first in range(0, len(busy), _CONSUMERS_PER_CHANNEL):
        _consume(consuming.channel(), busy[first : first + _CONSUMERS_PER_CHANNEL])
    channel = publishing.channel()
    for queue in idle:
        for _ in range(_BACKLOG):
            channel.basic_publish("", queue, _BODY)

    def serve() -> None:
        while not ending.is_set():
            consuming.process_data_events(time_limit=0.5)

    # A daemon thread: a blocked connection must not delay the end of the process.
    threading.Thread(target=serve, daemon=True).start()
    _publish(channel, busy or queues, args.rate, ending)
    return 0


if __name__ == "__main__":
    sys.exit(main("lab.busy", _run))
