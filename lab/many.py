"""Many queues at once on a lab broker, through the import of definitions: about a thousand a second."""

from collections.abc import Sequence
from typing import Any

import requests

from ackscope.errors import BrokerError

PREFIX = "many"
_BATCH = 2500
"""Queues in one request: few seconds each, far from any time limit of the broker."""

_SECONDS = 300.0


def names(count: int, first: int = 0) -> list[str]:
    """Names of the many, in order."""
    return [f"{PREFIX}-{number:06d}" for number in range(first, first + count)]


def definitions(queues: Sequence[str], queue_type: str = "classic") -> dict[str, Any]:
    """Durable queues in the virtual host `/`, as the broker imports them."""
    common = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {"x-queue-type": queue_type}}
    return {"queues": [{"name": name, **common} for name in queues]}


def make_queues(management: str, queues: Sequence[str], queue_type: str = "classic") -> None:
    """Declare queues; those that are there already stay as they are.

    Args:
        management: base URL of the management API, with credentials.
        queues: their names.
        queue_type: of all of them.

    Raises:
        BrokerError: the import failed; the message holds what the broker said.
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
