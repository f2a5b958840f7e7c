"""One conversation with one management API: GET, JSON, and errors in one line."""

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import requests
import urllib3
from requests.auth import HTTPBasicAuth

from ackscope.errors import BadAnswer, ConfigError
from exporter.broker.failures import explain_status, explain_transport, not_json
from exporter.broker.settings import ManagementSettings
from exporter.broker.transport import DeadlineAdapter

CONNECT_SECONDS = 3.0
"""A node that takes longer to accept a connection is away."""

MAX_BYTES = 256 * 1024 * 1024
"""More than any answer should be (10,000 queues are 11 MB): a bound for what one answer may cost us."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status that the caller said it understands, and the JSON that came with it."""

    status: int
    body: Any


class ManagementClient:
    """Asks one management API. One request at a time: a client belongs to one thread.

    Attributes:
        received: bytes of all answers so far.
    """

    def __init__(self, settings: ManagementSettings, what: str = "management") -> None:
        self.address = settings.address(what)
        self.received = 0
        self._timeout = settings.timeout
        self._session = requests.Session()
        # No proxies, netrc or certificates from the environment: what is asked is what is configured.
        self._session.trust_env = False
        self._session.auth = HTTPBasicAuth(
            self.address.username.encode(),
            self.address.password.encode(),
        )
        # Any type, as JSON is the default: 4.0 answers 406 instead of 404 to who asks for JSON where nothing is.
        self._session.headers.update({"Accept": "*/*", "Accept-Encoding": "identity"})
        self._session.verify = settings.verify
        if settings.verify and settings.ca_file is not None:
            self._session.verify = _checked(settings.ca_file, f"{what}.ca_file")
        if not settings.verify:
            # The operator has chosen it; a warning with every request helps nobody.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        self._session.mount(f"{self.address.scheme}://", DeadlineAdapter(pool_maxsize=1, max_retries=0))
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
        status, headers, body = self._exchange(path, params)
        if status not in understood:
            raise explain_status(self.address, path, status, headers, body)
        try:
            return Answer(status, orjson.loads(body))
        except orjson.JSONDecodeError:
            if status != 200:
                raise explain_status(self.address, path, status, headers, body) from None
            raise not_json(self.address, path, headers.get("content-type", ""), body) from None

    def close(self) -> None:
        """Close the kept connection."""
        self._session.close()

    def _exchange(self, path: str, params: Mapping[str, str | int] | None) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body, within the time of one request."""
        until = time.monotonic() + self._timeout
        try:
            try:
                return self._once(path, params, self._timeout)
            except requests.ConnectionError as error:
                # The server may close a kept connection at the moment that we reuse it: a fresh one tells.
                if not _was_closed(error):
                    raise
                return self._once(path, params, max(0.001, until - time.monotonic()))
        except requests.RequestException as error:
            raise explain_transport(self.address, path, error, self._timeout) from None

    def _once(
        self, path: str, params: Mapping[str, str | int] | None, seconds: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        limit = urllib3.Timeout(total=seconds, connect=min(CONNECT_SECONDS, seconds), read=seconds)
        with self._session.get(
            self._base + path,
            params=params,
            timeout=limit,  # type: ignore[arg-type]  # requests hands it to urllib3 as it is
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


def _checked(ca_file: Path, what: str) -> str:
    """The path of a file of certificates that can be loaded: else the first request would fail without a name."""
    try:
        ssl.create_default_context(cafile=str(ca_file))
    except OSError:
        raise ConfigError(
            f"{what}: {ca_file} is no readable file of PEM certificates; "
            "give that of the authority that signed the broker's"
        ) from None
    return str(ca_file)


def _was_closed(error: requests.ConnectionError) -> bool:
    reason = error.args[0] if error.args else None
    inner = reason.args[-1] if isinstance(reason, urllib3.exceptions.ProtocolError) and reason.args else None
    return isinstance(inner, ConnectionResetError | BrokenPipeError)
