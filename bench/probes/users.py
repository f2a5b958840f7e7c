"""Objects of a user on a broker, and a check that they did not change."""

import time
from typing import Any
from urllib.parse import quote

import requests

from ackscope.errors import BrokerError
from lab.node import LabNode

_QUEUES = {"orders": "classic", "payments": "quorum", "ackscope-of-a-user": "classic"}
"""Queue -> type; the last name almost begins with the prefix of the probes."""

_EXCHANGE, _MESSAGES = "shop", 25
_ARGUMENTS = {"x-max-length": 1000}
_TRIES, _BETWEEN = 5, 0.3
"""Number of tries, because a listing may fail while queues are created and deleted; seconds between two tries."""

_STABLE = ("name", "type", "durable", "auto_delete", "arguments")


class Users:
    """The objects of a user and of the probes on a node, through its management API.

    Args:
        prefix: first part of the names of the probes' objects.
    """

    def __init__(self, node: LabNode, prefix: str) -> None:
        self._base = f"{node.management}/api"
        self._own = f"{prefix}."
        self._session = requests.Session()

    def make(self) -> None:
        """Create queues of two types with messages, an exchange and its bindings."""
        self._call("PUT", f"exchanges/%2F/{_EXCHANGE}", {"type": "topic", "durable": True})
        for name, kind in _QUEUES.items():
            arguments = {"x-queue-type": kind, **_ARGUMENTS}
            self._call("PUT", f"queues/%2F/{quote(name)}", {"durable": True, "arguments": arguments})
            self._call("POST", f"bindings/%2F/e/{_EXCHANGE}/q/{quote(name)}", {"routing_key": name})
            message = {"routing_key": name, "payload": "x", "payload_encoding": "string"}
            for _ in range(_MESSAGES):
                self._call(
                    "POST", f"exchanges/%2F/{_EXCHANGE}/publish", {**message, "properties": {"delivery_mode": 2}}
                )

    def objects(self) -> dict[str, Any]:
        """Return the user's objects with the properties that must not change, to compare two states."""
        queues = [each for each in self._list("queues") if not each["name"].startswith(self._own)]
        exchanges = [each for each in self._list("exchanges") if not each["name"].startswith(self._own)]
        bindings = [each for each in self._list("bindings") if not each["destination"].startswith(self._own)]
        return {
            "queues": {each["name"]: {key: each.get(key) for key in _STABLE} for each in queues},
            "exchanges": {each["name"]: {key: each.get(key) for key in _STABLE} for each in exchanges},
            "bindings": sorted(f"{each['source']} {each['routing_key']} {each['destination']}" for each in bindings),
            "messages": {name: self._count(name) for name in _QUEUES},
        }

    def probes_objects(self) -> set[str]:
        """Return the queues and exchanges of the probes."""
        return {
            f"{kind[:-1]} {each['name']}"
            for kind in ("queues", "exchanges")
            for each in self._list(kind)
            if each["name"].startswith(self._own)
        }

    def _count(self, queue: str) -> int:
        """Count the messages in a queue by getting and requeueing each."""
        how = {"count": 10 * _MESSAGES, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 10}
        return len(self._call("POST", f"queues/%2F/{quote(queue)}/get", how))

    def _list(self, kind: str) -> list[dict[str, Any]]:
        # The statistics lag by seconds, and deleted objects would still be listed.
        found: list[dict[str, Any]] = self._call("GET", f"{kind}/%2F", None)
        return found

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        why = ""
        for _ in range(_TRIES):
            try:
                answer = self._session.request(method, f"{self._base}/{path}", json=body, timeout=10)
                if answer.ok:
                    return answer.json() if answer.content else None
                why = f"{answer.status_code} {answer.text[:80]}"
            except (requests.RequestException, ValueError) as error:
                why = type(error).__name__
            time.sleep(_BETWEEN)
        raise BrokerError(f"the lab's management API: {method} {path} failed ({why})")
