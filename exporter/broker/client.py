"""One conversation with one management API: GET, JSON, and errors in one line."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import requests
import urllib3

from ackscope.errors import BadAnswer
from exporter.broker.credentials import Credentials, credentials_of
from exporter.broker.failures import explain_status, explain_transport, not_json
from exporter.broker.session import limit, open_session
from exporter.broker.settings import ManagementSettings

MAX_BYTES = 256 * 1024 * 1024
"""More than any answer should be (10,000 queues are 11 MB): a bound for what one answer may cost us."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status that the caller said it understands, and the JSON that came with it."""

    status: int
    body: Any


class ManagementClient:
    """Asks one management API. One request at a time: a client belongs to one thread.

    Args:
        settings: where, and as whom.
        what: how to call them in a message, such as `clusters.shop.management`.
        credentials: to share with other clients of the same settings; its own without.

    Raises:
        UsageError: the address is not one.
        ConfigError: a file of the settings cannot be used.

    Attributes:
        received: bytes of all answers so far.
        requests: asked so far, whatever came of them.
        seconds: spent in them, from the first byte sent to the last received.
    """

    def __init__(
        self, settings: ManagementSettings, what: str = "management", credentials: Credentials | None = None
    ) -> None:
        self.address = settings.address(what)
        self.received = 0
        self.requests = 0
        self.seconds = 0.0
        self._timeout = settings.timeout
        self._credentials = credentials_of(settings, what) if credentials is None else credentials
        self._user = None if settings.bearer else self.address.username
        self._session = open_session(settings, what)
        # Any type, as JSON is the default: 4.0 answers 406 instead of 404 to who asks for JSON where nothing is.
        self._session.headers.update({"Accept": "*/*", "Accept-Encoding": "identity"})
        self._base = f"{self.address.scheme}://{self.address.where}{self.address.path}"

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """The JSON at `path` (from `/api/` on).

        Raises:
            Unreachable: no connection, or no full answer in time.
            Refused: 401 or 403.
            BadAnswer: any other status, or not JSON.
        """
        return self.ask(path, params).body

    def ask(
        self, path: str, params: Mapping[str, str | int] | None = None, understood: tuple[int, ...] = (200,)
    ) -> Answer:
        """The same, where other statuses than 200 are answers too.

        Raises:
            BrokerError: as `get` does; every status that is not in `understood` is an error.
        """
        authorization = self._credentials.header()
        status, headers, body = self._exchange(path, params, authorization)
        if status == 401 and self._credentials.renew(authorization):
            status, headers, body = self._exchange(path, params, self._credentials.header())
        if status not in understood:
            raise explain_status(self.address, path, status, headers, body, self._user)
        try:
            return Answer(status, orjson.loads(body))
        except orjson.JSONDecodeError:
            if status != 200:
                raise explain_status(self.address, path, status, headers, body, self._user) from None
            raise not_json(self.address, path, headers.get("content-type", ""), body) from None

    def close(self) -> None:
        """Close the kept connection."""
        self._session.close()

    def _exchange(
        self, path: str, params: Mapping[str, str | int] | None, authorization: str
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body, within the time of one request."""
        began = time.monotonic()
        until = began + self._timeout
        self.requests += 1
        try:
            try:
                return self._once(path, params, authorization, self._timeout)
            except requests.ConnectionError as error:
                # The server may close a kept connection at the moment that we reuse it: a fresh one tells.
                if not _was_closed(error):
                    raise
                return self._once(path, params, authorization, max(0.001, until - time.monotonic()))
        except requests.RequestException as error:
            raise explain_transport(self.address, path, error, self._timeout) from None
        finally:
            self.seconds += time.monotonic() - began

    def _once(
        self, path: str, params: Mapping[str, str | int] | None, authorization: str, seconds: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        with self._session.get(
            self._base + path,
            params=params,
            headers={"Authorization": authorization},
            timeout=limit(seconds),  # type: ignore[arg-type]  # requests hands it to urllib3 as it is
            allow_redirects=False,
            stream=True,
        ) as response:
            pieces = []
            size = 0
            for piece in response.iter_content(65536):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_BYTES:
                    raise BadAnswer(
                        f"{self.address.where}{self.address.path}{path}: the answer is larger than "
                        f"{MAX_BYTES // 2**20} MiB; not read on"
                    )
            self.received += size
            return response.status_code, response.headers, b"".join(pieces)


def _was_closed(error: requests.ConnectionError) -> bool:
    reason = error.args[0] if error.args else None
    inner = reason.args[-1] if isinstance(reason, urllib3.exceptions.ProtocolError) and reason.args else None
    return isinstance(inner, ConnectionResetError | BrokenPipeError)
