"""One conversation with one management API: GET, JSON, and errors in one line."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import requests
import urllib3

from ackscope.errors import BadAnswer, Unreachable
from exporter.broker.credentials import Credentials, credentials_of
from exporter.broker.failures import explain_status, explain_transport, not_json
from exporter.broker.patience import Patience
from exporter.broker.pieces import is_list, items
from exporter.broker.session import limit, open_session
from exporter.broker.settings import ManagementSettings
from exporter.broker.transport import DeadlineAdapter
from exporter.broker.way import Way

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
        way: the same, of how far away the broker is.
        connections: the same, to ask by; one of its own without.

    Raises:
        UsageError: the address is not one.
        ConfigError: a file of the settings cannot be used.

    Attributes:
        received: bytes of all answers so far.
        requests: asked so far, whatever came of them.
        seconds: spent in them, from the first byte sent to the last received, less the way.
    """

    def __init__(
        self,
        settings: ManagementSettings,
        what: str = "management",
        credentials: Credentials | None = None,
        way: Way | None = None,
        connections: DeadlineAdapter | None = None,
    ) -> None:
        self.address = settings.address(what)
        self.received = 0
        self.requests = 0
        self.seconds = 0.0
        self._timeout = settings.timeout
        self._patience = Patience(settings.timeout)
        self._way = Way() if way is None else way
        self._credentials = credentials_of(settings, what) if credentials is None else credentials
        self._user = None if settings.bearer else self.address.username
        self._session = open_session(settings, what, connections)
        # Any type, as JSON is the default: 4.0 answers 406 instead of 404 to who asks for JSON where nothing is.
        self._session.headers.update({"Accept": "*/*", "Accept-Encoding": "identity"})
        self._base = f"{self.address.scheme}://{self.address.where}{self.address.path}"

    def get(self, path: str, params: Mapping[str, str | int] | None = None, *, patient: bool = False) -> Any:
        """The JSON at `path` (from `/api/` on).

        Args:
            path: from `/api/` on.
            params: of the query.
            patient: waited for longer than the time limit of the settings where that was not enough (`Patience`).

        Raises:
            Unreachable: no connection, or no full answer in time.
            Refused: 401 or 403.
            BadAnswer: any other status, or not JSON.
        """
        return self.ask(path, params, patient=patient).body

    def ask(
        self,
        path: str,
        params: Mapping[str, str | int] | None = None,
        understood: tuple[int, ...] = (200,),
        within: float | None = None,
        *,
        patient: bool = False,
    ) -> Answer:
        """The same, where other statuses than 200 are answers too.

        Args:
            path: from `/api/` on.
            params: of the query.
            understood: statuses that are answers.
            within: seconds that this request may take, where that is less than the time limit of the settings.
            patient: as of `get`.

        Raises:
            BrokerError: as `get` does; every status that is not in `understood` is an error.
        """
        if patient:
            status, headers, body = self._patiently(path, params)
        else:
            status, headers, body = self._authorized(path, params, min(within or self._timeout, self._timeout))
        if status not in understood:
            raise explain_status(self.address, path, status, headers, body, self._user)
        try:
            return Answer(status, orjson.loads(body))
        except orjson.JSONDecodeError:
            if status != 200:
                raise explain_status(self.address, path, status, headers, body, self._user) from None
            raise not_json(self.address, path, headers.get("content-type", ""), body) from None

    def each(self, path: str, params: Mapping[str, str | int] | None = None) -> Iterator[Any] | None:
        """The items of a long list, decoded little by little; None where the answer is no list. Asked patiently.

        Raises:
            BrokerError: as `get` does, that it is not JSON perhaps only after some items.
        """
        status, headers, body = self._patiently(path, params)
        if status != 200:
            raise explain_status(self.address, path, status, headers, body, self._user)
        if is_list(body):
            return self._items(path, headers, body)
        try:
            orjson.loads(body)
        except orjson.JSONDecodeError:
            raise not_json(self.address, path, headers.get("content-type", ""), body) from None
        return None

    def _items(self, path: str, headers: Mapping[str, str], body: bytearray) -> Iterator[Any]:
        try:
            yield from items(body)
        except ValueError:
            raise not_json(self.address, path, headers.get("content-type", ""), body) from None

    def close(self) -> None:
        """Close what is kept of connections."""
        self._session.close()

    def _patiently(self, path: str, params: Mapping[str, str | int] | None) -> tuple[int, Mapping[str, str], bytearray]:
        began = time.monotonic()
        try:
            answer = self._authorized(path, params, self._patience.limit(path))
        except Unreachable:
            self._patience.failed(path, time.monotonic() - began)
            raise
        self._patience.answered(path, time.monotonic() - began)
        return answer

    def _authorized(
        self, path: str, params: Mapping[str, str | int] | None, seconds: float
    ) -> tuple[int, Mapping[str, str], bytearray]:
        authorization = self._credentials.header()
        status, headers, body = self._exchange(path, params, authorization, seconds)
        if status == 401 and self._credentials.renew(authorization):
            status, headers, body = self._exchange(path, params, self._credentials.header(), seconds)
        return status, headers, body

    def _exchange(
        self, path: str, params: Mapping[str, str | int] | None, authorization: str, seconds: float
    ) -> tuple[int, Mapping[str, str], bytearray]:
        """Status, headers and body, within the time of one request."""
        way, began = self._way.seconds, time.monotonic()
        until = began + seconds
        self.requests += 1
        try:
            try:
                answer = self._once(path, params, authorization, seconds)
            except requests.ConnectionError as error:
                # The server may close a kept connection at the moment that we reuse it: a fresh one tells.
                if not _was_closed(error):
                    raise
                answer = self._once(path, params, authorization, max(0.001, until - time.monotonic()))
            ended = time.monotonic()
            self._way.note(ended - began, ended)
        except requests.RequestException as error:
            raise explain_transport(self.address, path, error, seconds) from None
        finally:
            self.seconds += max(0.0, time.monotonic() - began - way)
        return answer

    def _once(
        self, path: str, params: Mapping[str, str | int] | None, authorization: str, seconds: float
    ) -> tuple[int, Mapping[str, str], bytearray]:
        with self._session.get(
            self._base + path,
            params=params,
            headers={"Authorization": authorization},
            timeout=limit(seconds),  # type: ignore[arg-type]  # requests hands it to urllib3 as it is
            allow_redirects=False,
            stream=True,
        ) as response:
            # It grows in place: pieces that are joined at the end take twice the memory for a moment.
            body = bytearray()
            for piece in response.iter_content(65536):
                body += piece
                if len(body) > MAX_BYTES:
                    raise BadAnswer(
                        f"{self.address.where}{self.address.path}{path}: the answer is larger than "
                        f"{MAX_BYTES // 2**20} MiB; not read on"
                    )
            self.received += len(body)
            return response.status_code, response.headers, body


def _was_closed(error: requests.ConnectionError) -> bool:
    reason = error.args[0] if error.args else None
    inner = reason.args[-1] if isinstance(reason, urllib3.exceptions.ProtocolError) and reason.args else None
    return isinstance(inner, ConnectionResetError | BrokenPipeError)
