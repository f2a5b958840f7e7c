"""Credentials of a management API: user and password, a token, or tokens of an OAuth 2 server.

Secret files are re-read when they change.
"""

import base64
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import quote_plus

import orjson
import requests

from ackscope.address import Address
from ackscope.errors import BadAnswer, BrokerError, ConfigError, Refused, Unreachable
from ackscope.settings import secret
from exporter.broker.http_errors import map_transport_error
from exporter.broker.session import open_session, request_timeout
from exporter.broker.settings import AccessSettings, ManagementSettings, OAuth2Settings

_MAX_BYTES = 2**20
_DEFAULT_LIFETIME_SECONDS = 300.0
"""Assumed lifetime of a token without `expires_in`."""

_RETRY_SECONDS = 5.0
"""Pause after a failed token request; until then callers get the same error."""


class Credentials(Protocol):
    """Source of the `Authorization` header. Thread-safe; shared by the connections of one cluster."""

    def header(self) -> str:
        """Return the value of the `Authorization` header.

        Raises:
            BrokerError: no token could be obtained.
        """
        ...

    def renew(self, refused: str) -> bool:
        """Renew a header that the broker refused. Returns True if there is a different one now, worth a retry."""
        ...


def credentials_from(
    settings: ManagementSettings, what: str = "management", now: Callable[[], float] = time.monotonic
) -> Credentials:
    """Create the credentials that the settings describe.

    Args:
        settings: user and password, token or OAuth 2.
        what: name of the settings in error messages, such as `clusters.shop.management`.
        now: monotonic clock in seconds.

    Raises:
        UsageError: invalid URL.
        ConfigError: a file cannot be read.
    """
    if settings.oauth2 is not None:
        return _OAuth2Credentials(settings.oauth2, settings, what, now)
    if settings.token is not None:
        return _StaticCredentials(_bearer(settings.token.get_secret_value(), f"{what}.token"))
    if settings.token_file is not None:
        place = f"{what}.token_file"
        return _FileCredentials(
            settings.token_file, place, lambda token: _bearer(token, f"{place}: {settings.token_file}")
        )
    address = settings.address(what)
    if settings.password_file is not None:
        return _FileCredentials(
            settings.password_file, f"{what}.password_file", lambda password: _basic(address.username, password)
        )
    return _StaticCredentials(_basic(address.username, address.password))


def _basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def _bearer(token: str, place: str) -> str:
    """Return the header for a valid token. An invalid one could break the request or inject a second header."""
    if not is_valid_token(token.strip()):
        raise ConfigError(f"{place}: invalid token; use a single word of printable ASCII characters")
    return f"Bearer {token.strip()}"


def is_valid_token(text: str) -> bool:
    """Whether the text can be sent as a bearer token."""
    return text.isascii() and text.isprintable() and bool(text) and " " not in text


class SecretFile:
    """The secret in the first line of a file, re-read when the file changes.

    If a changed file cannot be read, the last valid secret stays.

    Raises:
        ConfigError: the file cannot be read or is empty when the object is created.
    """

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._version = self._file_version()
        self._secret = self._load()

    def read(self) -> str:
        """Return the current secret."""
        version = self._file_version()
        if version != self._version:
            self._reload()
            self._version = version
        return self._secret

    def reload(self) -> str:
        """Re-read the secret unconditionally: a file may change twice within the resolution of its timestamp."""
        self._reload()
        return self._secret

    def _reload(self) -> None:
        # The file may be in the middle of being replaced; the next read will see it.
        with suppress(ConfigError):
            self._secret = self._load()

    def _load(self) -> str:
        text = secret(None, self._path, self._what)
        if not text:
            raise ConfigError(f"{self._what}: {self._path} is empty; write the secret on its first line")
        return text

    def _file_version(self) -> tuple[int, ...] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return (status.st_ino, status.st_mtime_ns, status.st_size)


class _StaticCredentials:
    def __init__(self, header: str) -> None:
        self._header = header

    def header(self) -> str:
        return self._header

    def renew(self, refused: str) -> bool:
        del refused
        return False


class _FileCredentials:
    def __init__(self, path: Path, what: str, to_header: Callable[[str], str]) -> None:
        self._file = SecretFile(path, what)
        self._to_header = to_header
        self._lock = threading.Lock()
        self._last_valid = to_header(self._file.read())

    def header(self) -> str:
        with self._lock:
            return self._current(self._file.read())

    def renew(self, refused: str) -> bool:
        with self._lock:
            return self._current(self._file.reload()) != refused

    def _current(self, secret_text: str) -> str:
        # If the file now contains nothing that can be sent, the last valid header stays.
        with suppress(ConfigError):
            self._last_valid = self._to_header(secret_text)
        return self._last_valid


class _OAuth2Credentials:
    """Tokens of an OAuth 2 server, each requested before its predecessor expires."""

    def __init__(self, settings: OAuth2Settings, access: AccessSettings, what: str, now: Callable[[], float]) -> None:
        self._settings = settings
        self._timeout = access.timeout
        self._now = now
        self._address = settings.address(f"{what}.oauth2.token_url")
        self._session = open_session(access, what)
        self._file: SecretFile | None = None
        if settings.client_secret_file is not None:
            self._file = SecretFile(settings.client_secret_file, f"{what}.oauth2.client_secret_file")
        self._lock = threading.Lock()
        self._token: str | None = None
        self._renew_at = self._expires_at = float("-inf")
        self._failure: tuple[float, BrokerError] | None = None

    def header(self) -> str:
        with self._lock:
            now = self._now()
            if self._token is None or now >= self._renew_at:
                self._refresh(now)
            return f"Bearer {self._token}"

    def renew(self, refused: str) -> bool:
        with self._lock:
            if refused != f"Bearer {self._token}":
                return True
            # A token refused before it expires was revoked, or the server changed its signing keys.
            self._token = None
            try:
                self._refresh(self._now())
            except BrokerError:
                return False
            return refused != f"Bearer {self._token}"

    def _refresh(self, now: float) -> None:
        """Request a token. On failure the current token stays in use until it expires."""
        if self._failure is not None and now < self._failure[0]:
            failure: BrokerError | None = self._failure[1]
        else:
            try:
                self._token, lifetime = self._request()
            except BrokerError as error:
                failure = error
                self._failure = (self._now() + _RETRY_SECONDS, error)
            else:
                self._failure = failure = None
                # Renew a tenth of the lifetime early, at most a minute, which leaves time for several attempts.
                self._renew_at, self._expires_at = now + lifetime - min(60.0, lifetime / 10), now + lifetime
        if failure is not None and (self._token is None or now >= self._expires_at):
            raise type(failure)(str(failure))

    def _request(self) -> tuple[str, float]:
        address, settings = self._address, self._settings
        if self._file is not None:
            password = self._file.read()
        else:
            password = secret(settings.client_secret, None, "client_secret") or ""
        form = {"grant_type": "client_credentials", **({"scope": settings.scope} if settings.scope else {})}
        try:
            # Both are encoded before they are joined, as RFC 6749 (2.3.1) requires.
            answer = self._session.post(
                settings.token_url,
                data=form,
                headers={
                    "Accept": "application/json",
                    # Requests are rare, so no connection stays open.
                    "Connection": "close",
                    "Authorization": _basic(quote_plus(settings.client_id), quote_plus(password)),
                },
                timeout=request_timeout(self._timeout),  # type: ignore[arg-type]  # requests hands it to urllib3 as it is
                allow_redirects=False,
                stream=True,
            )
            with answer:
                body = b""
                for chunk in answer.iter_content(65536):
                    body += chunk
                    if len(body) > _MAX_BYTES:
                        break
        except requests.RequestException as error:
            raise map_transport_error(address, "", error, self._timeout, "the token server") from None
        finally:
            # A server may close without announcing it; a pooled connection would then fail the next request.
            self._session.close()
        return _parse_token(body, answer.status_code, address, settings.client_id)


def _parse_token(body: bytes, status: int, address: Address, client: str) -> tuple[str, float]:
    """Return the token in an answer and its lifetime in seconds.

    Raises:
        BrokerError: the answer contains no token.
    """
    place = f"{address.where}{address.path}"
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    answer = document if isinstance(document, dict) else {}
    if status in (400, 401, 403):
        reason = answer.get("error_description") or answer.get("error")
        detail = f" ({reason[:200]})" if isinstance(reason, str) else ""
        raise Refused(
            f"{place}: {status} no token for client {client!r}{detail}; check client_id, client_secret and scope"
        )
    if status == 503:
        raise Unreachable(f"{place}: 503 no token for client {client!r}; the token server is not ready, try later")
    if status != 200:
        raise BadAnswer(f"{place}: {status} no token for client {client!r}; is this the token endpoint?")
    token, lifetime = answer.get("access_token"), answer.get("expires_in", _DEFAULT_LIFETIME_SECONDS)
    if not isinstance(token, str) or not is_valid_token(token):
        raise BadAnswer(f"{place}: an answer without access_token; is this the token endpoint?")
    valid = isinstance(lifetime, int | float) and not isinstance(lifetime, bool) and lifetime > 0
    return token, float(lifetime) if valid else _DEFAULT_LIFETIME_SECONDS
