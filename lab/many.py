"""Declare many queues on a lab broker by importing definitions: about 1,000 per second."""

from collections.abc import Sequence
from typing import Any

import requests

from ackscope.errors import BrokerError

PREFIX = "many"
_BATCH = 2500
"""Queues per request: a few seconds of work, far below the timeouts of the broker."""

_SECONDS = 300.0


def names(count: int, first: int = 0) -> list[str]:
    """Return the names of the queues, in order."""
    return [f"{PREFIX}-{number:06d}" for number in range(first, first + count)]


def definitions(queues: Sequence[str], queue_type: str = "classic") -> dict[str, Any]:
    """Return the definitions of durable queues in the virtual host `/`."""
    common = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {"x-queue-type": queue_type}}
    return {"queues": [{"name": name, **common} for name in queues]}


def make_queues(management: str, queues: Sequence[str], queue_type: str = "classic") -> None:
    """Declare queues; existing ones are not changed.

    Args:
        management: base URL of the management API, with credentials.
        queues: names of the queues.
        queue_type: type of all queues.

    Raises:
        BrokerError: the import failed; the message has the response of the broker.
    """
    for first in range(0, len(queues), _BATCH):
        some = queues[first : first + _BATCH]
        try:
            answer = requests.post(
                f"{management}/api/definitions", json=definitions(some, queue_type), timeout=_SECONDS
            )
        except requests.RequestException as error:
            raise BrokerError(f"import of {len(some)} queues failed: {type(error).__name__}") from None
        if not answer.ok:
            raise BrokerError(f"import of {len(some)} queues failed: {answer.status_code} {answer.text[:200]}")
