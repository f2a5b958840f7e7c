"""The webhook: one POST of a JSON document per message."""

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import requests

from ackscope import __version__
from ackscope.errors import ConfigError
from exporter.api.documents import as_json
from exporter.delivery.incidents import FindingIncident
from exporter.delivery.messages import DeliveryMessage
from exporter.delivery.receivers.contract import DeliveryError, send
from exporter.delivery.settings import WebhookSettings


class WebhookReceiver:
    """Sends to a webhook. Secrets are read for every message, so that a new one in the same file is used at once."""

    refresh: float | None = None

    def __init__(self, settings: WebhookSettings, wall: Callable[[], float]) -> None:
        self._settings, self._wall = settings, wall
        self._session = requests.Session()

    def deliver(self, message: DeliveryMessage) -> None:
        """Send one message.

        Raises:
            DeliveryError: it was not delivered.
        """
        try:
            url = self._settings.target()
            key, token = self._settings.secrets()
        except (ConfigError, ValueError) as error:
            raise DeliveryError(str(error)) from None
        body = as_json(message.document)
        headers = {"Content-Type": "application/json", "User-Agent": f"ackscope/{__version__}"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if key is not None:
            sent_at = str(int(self._wall()))
            headers |= {"X-Ackscope-Timestamp": sent_at, "X-Ackscope-Signature": sign(key, sent_at, body)}
        send(self._session, "POST", url, body=body, headers=headers, ca_file=self._settings.ca_file)

    def keep_alive(self, active: Sequence[FindingIncident], wall: float) -> None:
        """A webhook needs no repetition."""

    def memory(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}


def sign(key: str, sent_at: str, body: bytes) -> str:
    """The signature of a body: HMAC-SHA256 of the time in seconds since 1970, a dot, and the body."""
    return f"sha256={hmac.new(key.encode(), sent_at.encode() + b'.' + body, hashlib.sha256).hexdigest()}"
