"""The management API of the broker under test."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import requests

from ackscope.address import Address
from ackscope.errors import BadAnswer, Refused, Unreachable
from probes.settings import AmqpServer

_TIMEOUT = 10.0
"""Timeout in seconds for the connection, and again for the response."""


class HttpManage:
    """A client of the API that runs requests in threads, so that checks do not wait for each other.

    Args:
        address: address of the API, with credentials.
        server: AMQP address of the same broker: gives the virtual host and the verification of certificates.
    """

    def __init__(self, address: Address, server: AmqpServer) -> None:
        self._address, self._vhost = address, server.address.vhost
        self._verify: bool | str = str(server.ca_file) if server.ca_file and server.verify else server.verify

    async def queue(self, name: str) -> Mapping[str, Any] | None:
        """Return `/api/queues/vhost/name`; None if the queue does not exist. Its statistics lag by up to 5 s."""
        return await asyncio.to_thread(self.get, f"/api/queues/{quote(self._vhost, safe='')}/{quote(name, safe='')}")

    def get(self, path: str) -> Mapping[str, Any] | None:
        """Return a JSON document; None for status 404.

        Raises:
            BrokerError: no response, an error status, or no JSON.
        """
        address = self._address
        url = f"{address.scheme}://{address.where}{address.path}{path}"
        try:
            answer = requests.get(url, auth=(address.username, address.password), timeout=_TIMEOUT, verify=self._verify)
        except requests.RequestException as error:
            raise Unreachable(
                f"{address.where}: no response from the management API ({type(error).__name__})"
            ) from None
        if answer.status_code == 404:
            return None
        if answer.status_code in {401, 403}:
            raise Refused(f"{address.where}: the management API refuses user {address.username} ({answer.status_code})")
        try:
            answer.raise_for_status()
            found: Mapping[str, Any] = answer.json()
        except (requests.RequestException, ValueError):
            raise BadAnswer(
                f"{address.where}: status {answer.status_code} without a JSON document for {path}"
            ) from None
        return found
