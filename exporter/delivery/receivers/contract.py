"""The interface of receivers, and what they have in common."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import requests

from exporter.delivery.incidents import FindingIncident
from exporter.delivery.messages import DeliveryMessage

CONNECT_SECONDS, READ_SECONDS = 5.0, 10.0
_REJECTED = {400, 413, 415, 422}
_MAX_WAIT = 600.0


class DeliveryError(Exception):
    """A message was not delivered.

    Args:
        problem: why, in a few words without secrets.
        rejected: the receiver is there, but does not accept this message: others may still be accepted.
        retry_after: seconds after which it wants the next attempt; None if it does not say.
    """

    def __init__(self, problem: str, *, rejected: bool = False, retry_after: float | None = None) -> None:
        super().__init__(problem)
        self.rejected, self.retry_after = rejected, retry_after


class Receiver(Protocol):
    """A destination."""

    refresh: float | None
    """Seconds between two calls of `keep_alive`; None if it needs none."""

    def deliver(self, message: DeliveryMessage) -> None:
        """Send one message.

        Raises:
            DeliveryError: it was not delivered.
        """

    def keep_alive(self, active: Sequence[FindingIncident], wall: float) -> None:
        """Send again what is present, for destinations that forget.

        Raises:
            DeliveryError: it was not delivered.
        """

    def memory(self) -> Mapping[str, Any]:
        """What has to survive a restart, as JSON."""


def send(
    session: requests.Session,
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
    ca_file: Path | None = None,
) -> requests.Response:
    """Send one HTTP request and return a successful response.

    Raises:
        DeliveryError: there is none; the message names the host at most.
    """
    host = urlsplit(url).hostname
    try:
        response = session.request(
            method,
            url,
            data=body,
            headers=dict(headers or {}),
            auth=auth,
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            verify=True if ca_file is None else str(ca_file),
            allow_redirects=False,
        )
    except requests.exceptions.SSLError:
        raise DeliveryError(f"{host}: its certificate is not trusted; set ca_file") from None
    except requests.Timeout:
        raise DeliveryError(f"{host}: no response within {READ_SECONDS:g} s") from None
    except (requests.RequestException, OSError):
        # The library's text has the whole URL, which may be a secret.
        raise DeliveryError(f"{host}: no connection") from None
    if response.is_redirect:
        raise DeliveryError(f"{host}: redirects to another address; configure that one")
    if not response.ok:
        rejected = response.status_code in _REJECTED
        raise DeliveryError(
            f"{host}: status {response.status_code}", rejected=rejected, retry_after=_retry_after(response)
        )
    return response


def _retry_after(response: requests.Response) -> float | None:
    try:
        return min(_MAX_WAIT, max(0.0, float(response.headers.get("Retry-After", ""))))
    except ValueError:
        return None
