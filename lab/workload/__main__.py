"""`python -m lab.workload --amqp URL`: run the shop until SIGTERM or the end of the input."""

import argparse
import sys
import threading
import time

from ackscope.address import Address
from ackscope.cli import Parser
from ackscope.log import get_logger
from lab.amqp import parse_lab_address
from lab.program import end_event, main
from lab.workload import emails, events, orders, payments
from lab.workload.client import Job, keep

JOBS: tuple[Job, ...] = (*orders.JOBS, *payments.JOBS, *emails.JOBS, *events.JOBS)
_END_WITHIN = 5.0
_log = get_logger("lab.workload")


def _arguments() -> argparse.Namespace:
    parser = Parser(prog="lab.workload", description="Run a sample workload: the queues and clients of a small shop.")
    parser.add_argument("--amqp", required=True, metavar="URL", help="as in amqp://user:password@host:5672/vhost")
    return parser.parse_args()


def run_jobs(address: Address, ending: threading.Event) -> None:
    """Run every job in its own thread until `ending` is set.

    Raises:
        RuntimeError: a job ended by a programming error, whose traceback was logged.
    """
    broken: list[str] = []

    def run(job: Job) -> None:
        try:
            keep(job, address, ending)
        except Exception:  # noqa: BLE001  the boundary of the thread: otherwise a job would end unnoticed
            _log.exception("job failed unexpectedly", job=job.name)
            broken.append(job.name)
            ending.set()

    # Daemon threads: a publisher on a blocked connection must not delay the end of the process.
    threads = [threading.Thread(target=run, args=(job,), name=job.name, daemon=True) for job in JOBS]
    for thread in threads:
        thread.start()
    ending.wait()
    deadline = time.monotonic() + _END_WITHIN
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if broken:
        raise RuntimeError(f"failed jobs: {', '.join(broken)}")


def _run() -> int:
    address = parse_lab_address(_arguments().amqp)
    run_jobs(address, end_event())
    return 0


if __name__ == "__main__":
    sys.exit(main("lab.workload", _run))
