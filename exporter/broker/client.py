"""HTTP client of one management API: GET requests, JSON answers, one-line errors."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import requests
import urllib3

from ackscope.errors import BadAnswer, Unreachable
from exporter.broker.clock_offset import ClockOffset
from exporter.broker.cost_model import AdaptiveTimeout, RttEstimator
from exporter.broker.credentials import Credentials, credentials_from
from exporter.broker.http_errors import map_status_error, map_transport_error, not_json_error
from exporter.broker.json_stream import is_list, iter_items
from exporter.broker.session import open_session, request_timeout
from exporter.broker.settings import ManagementSettings
from exporter.broker.transport import DeadlineAdapter

MAX_BYTES = 256 * 1024 * 1024
"""Largest answer that is read, to bound our memory. The list of 10,000 queues has 11 MB."""

_RawResponse = tuple[int, Mapping[str, str], bytearray]
"""Status, headers and body."""


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """An accepted response: its status and JSON body."""

    status: int
    body: Any


class ManagementClient:
    """Client of one management API. One request at a time: a client belongs to one thread.

    Args:
        settings: address and credentials.
        what: name of the settings in error messages, such as `clusters.shop.management`.
        credentials: shared with other clients of the same settings; by default its own.
        rtt: round-trip estimate, shared with the same clients; by default its own.
        connections: connection pool, shared with the same clients; by default its own.
        clock_offset: learns from every response, shared with the same clients; by default its own.

    Raises:
        UsageError: invalid address.
        ConfigError: a file of the settings cannot be used.

    Attributes:
        received: bytes of all answers so far.
        requests: number of requests so far, failed ones included.
        seconds: seconds of broker time so far: from the first byte sent to the last received, less the round trip.
    """

    def __init__(
        self,
        settings: ManagementSettings,
        what: str = "management",
        credentials: Credentials | None = None,
        rtt: RttEstimator | None = None,
        connections: DeadlineAdapter | None = None,
        clock_offset: ClockOffset | None = None,
    ) -> None:
        self.address = settings.address(what)
        self.received = 0
        self.requests = 0
        self.seconds = 0.0
        self._timeout = settings.timeout
        self._adaptive_timeout = AdaptiveTimeout(settings.timeout)
        self._rtt = RttEstimator() if rtt is None else rtt
        self._clock_offset = ClockOffset() if clock_offset is None else clock_offset
        self._credentials = credentials_from(settings, what) if credentials is None else credentials
        self._user = None if settings.bearer else self.address.username
        self._session = open_session(settings, what, connections)
        # Accept any type; JSON is the default. With "application/json", 4.0 answers 406 instead of 404.
        self._session.headers.update({"Accept": "*/*", "Accept-Encoding": "identity"})
        self._base = f"{self.address.scheme}://{self.address.where}{self.address.path}"

    def get(self, path: str, params: Mapping[str, str | int] | None = None, *, adaptive: bool = False) -> Any:
        """Return the JSON at a path.

        Args:
            path: starts with `/api/`.
            params: query parameters.
            adaptive: whether to wait longer if the configured timeout was too short before (`AdaptiveTimeout`).

        Raises:
            Unreachable: no connection, or no complete answer in time.
            Refused: 401 or 403.
            BadAnswer: any other status, or not JSON.
        """
        return self.request(path, params, adaptive=adaptive).body

    def request(
        self,
        path: str,
        params: Mapping[str, str | int] | None = None,
        accepted: tuple[int, ...] = (200,),
        timeout: float | None = None,
        *,
        adaptive: bool = False,
    ) -> JsonResponse:
        """Like `get`, but with other accepted statuses than 200.

        Args:
            path: starts with `/api/`.
            params: query parameters.
            accepted: statuses that are not an error.
            timeout: seconds for this request, if less than the configured timeout.
            adaptive: as in `get`.

        Raises:
            BrokerError: as in `get`; every status that is not accepted is an error.
        """
        if adaptive:
            status, headers, body = self._send_adaptive(path, params)
        else:
            status, headers, body = self._send_authorized(path, params, min(timeout or self._timeout, self._timeout))
        if status not in accepted:
            raise map_status_error(self.address, path, status, headers, body, self._user)
        try:
            return JsonResponse(status, orjson.loads(body))
        except orjson.JSONDecodeError:
            if status != 200:
                raise map_status_error(self.address, path, status, headers, body, self._user) from None
            raise not_json_error(self.address, path, headers.get("content-type", ""), body) from None

    def stream_list(self, path: str, params: Mapping[str, str | int] | None = None) -> Iterator[Any] | None:
        """Return the items of a long list, decoded incrementally; None if the answer is not a list.

        The timeout is adaptive.

        Raises:
            BrokerError: as in `get`; invalid JSON may be detected only after some items.
        """
        status, headers, body = self._send_adaptive(path, params)
        if status != 200:
            raise map_status_error(self.address, path, status, headers, body, self._user)
        if is_list(body):
            return self._iter_items(path, headers, body)
        try:
            orjson.loads(body)
        except orjson.JSONDecodeError:
            raise not_json_error(self.address, path, headers.get("content-type", ""), body) from None
        return None

    def _iter_items(self, path: str, headers: Mapping[str, str], body: bytearray) -> Iterator[Any]:
        try:
            yield from iter_items(body)
        except ValueError:
            raise not_json_error(self.address, path, headers.get("content-type", ""), body) from None

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def _send_adaptive(self, path: str, params: Mapping[str, str | int] | None) -> _RawResponse:
        began = time.monotonic()
        try:
            answer = self._send_authorized(path, params, self._adaptive_timeout.timeout_for(path))
        except Unreachable:
            self._adaptive_timeout.record_failure(path, time.monotonic() - began)
            raise
        self._adaptive_timeout.record_success(path, time.monotonic() - began)
        return answer

    def _send_authorized(self, path: str, params: Mapping[str, str | int] | None, timeout: float) -> _RawResponse:
        authorization = self._credentials.header()
        status, headers, body = self._send_timed(path, params, authorization, timeout)
        if status == 401 and self._credentials.renew(authorization):
            status, headers, body = self._send_timed(path, params, self._credentials.header(), timeout)
        return status, headers, body

    def _send_timed(
        self, path: str, params: Mapping[str, str | int] | None, authorization: str, timeout: float
    ) -> _RawResponse:
        rtt, began = self._rtt.seconds, time.monotonic()
        deadline = began + timeout
        self.requests += 1
        try:
            try:
                answer = self._send(path, params, authorization, timeout)
            except requests.ConnectionError as error:
                # The server may close a pooled connection just as we reuse it: retry once on a new one.
                if not _was_closed(error):
                    raise
                answer = self._send(path, params, authorization, max(0.001, deadline - time.monotonic()))
            ended = time.monotonic()
            self._rtt.record(ended - began, ended)
        except requests.RequestException as error:
            raise map_transport_error(self.address, path, error, timeout) from None
        finally:
            self.seconds += max(0.0, time.monotonic() - began - rtt)
        return answer

    def _send(
        self, path: str, params: Mapping[str, str | int] | None, authorization: str, timeout: float
    ) -> _RawResponse:
        sent = time.monotonic()
        with self._session.get(
            self._base + path,
            params=params,
            headers={"Authorization": authorization},
            timeout=request_timeout(timeout),  # type: ignore[arg-type]  # requests hands it to urllib3 as it is
            allow_redirects=False,
            stream=True,
        ) as response:
            self._clock_offset.record(response.headers, sent, time.monotonic())
            # The buffer grows in place: joining chunks at the end would briefly need twice the memory.
            body = bytearray()
            for chunk in response.iter_content(65536):
                body += chunk
                if len(body) > MAX_BYTES:
                    raise BadAnswer(
                        f"{self.address.where}{self.address.path}{path}: the answer is larger than "
                        f"{MAX_BYTES // 2**20} MiB; stopped reading"
                    )
            self.received += len(body)
            return response.status_code, response.headers, body


def _was_closed(error: requests.ConnectionError) -> bool:
    reason = error.args[0] if error.args else None
    inner = reason.args[-1] if isinstance(reason, urllib3.exceptions.ProtocolError) and reason.args else None
    return isinstance(inner, ConnectionResetError | BrokenPipeError)
