"""What is sent to be let in: user and password, a token, or tokens of an OAuth 2 server.

Secrets that live in files are read again when they change.
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
from exporter.broker.failures import explain_transport
from exporter.broker.session import limit, open_session
from exporter.broker.settings import AccessSettings, ManagementSettings, OAuth2Settings

_MOST_BYTES = 2**20
_LIFE_SECONDS = 300.0
"""How long a token is taken to be good whose server does not tell."""

_AGAIN_SECONDS = 5.0
"""After a failure the token server is left alone for so long; those who ask meanwhile get the same error."""


class Credentials(Protocol):
    """May be shared by the connections of one cluster, each in its own thread."""

    def header(self) -> str:
        """The value of `Authorization`.

        Raises:
            BrokerError: no token could be had.
        """
        ...

    def renew(self, refused: str) -> bool:
        """After the broker refused a header: whether there is another one now, worth one more try."""
        ...


def credentials_of(
    settings: ManagementSettings, what: str = "management", now: Callable[[], float] = time.monotonic
) -> Credentials:
    """What these settings say.

    Args:
        settings: user and password, token or OAuth 2.
        what: how to call them in a message, such as `clusters.shop.management`.
        now: seconds of a monotonic clock.

    Raises:
        UsageError: the URL is not an address.
        ConfigError: a file cannot be read.
    """
    if settings.oauth2 is not None:
        return _Granted(settings.oauth2, settings, what, now)
    if settings.token is not None:
        return _Fixed(_bearer(settings.token.get_secret_value(), f"{what}.token"))
    if settings.token_file is not None:
        place = f"{what}.token_file"
        return _Watched(settings.token_file, place, lambda token: _bearer(token, f"{place}: {settings.token_file}"))
    address = settings.address(what)
    if settings.password_file is not None:
        return _Watched(
            settings.password_file, f"{what}.password_file", lambda password: _basic(address.username, password)
        )
    return _Fixed(_basic(address.username, address.password))


def _basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def _bearer(token: str, place: str) -> str:
    """The header of a token; whatever is none would break the request, or hide a second header in it."""
    if not is_token(token.strip()):
        raise ConfigError(f"{place}: is no token; one is a single word of ASCII letters, digits and signs")
    return f"Bearer {token.strip()}"


def is_token(text: str) -> bool:
    """Whether it may be sent as a token."""
    return text.isascii() and text.isprintable() and bool(text) and " " not in text


class SecretFile:
    """The first line of a file, read again when the file changes.

    Raises:
        ConfigError: it cannot be read at first, or is empty; later the last good one stays.
    """

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._mark = self._look()
        self._secret = self._load()

    def read(self) -> str:
        """The secret as it is now."""
        mark = self._look()
        if mark != self._mark:
            self._again()
            self._mark = mark
        return self._secret

    def again(self) -> str:
        """The secret, read in any case: a file may change twice within what its date tells."""
        self._again()
        return self._secret

    def _again(self) -> None:
        # It may be in the middle of being replaced: the next look tells.
        with suppress(ConfigError):
            self._secret = self._load()

    def _load(self) -> str:
        try:
            text = secret(None, self._path, self._what)
        except UnicodeDecodeError:
            raise ConfigError(f"{self._what}: {self._path} is no text; write the secret on its first line") from None
        if not text:
            raise ConfigError(f"{self._what}: {self._path} is empty; write the secret on its first line")
        return text

    def _look(self) -> tuple[int, ...] | None:
        try:
            seen = self._path.stat()
        except OSError:
            return None
        return (seen.st_ino, seen.st_mtime_ns, seen.st_size)


class _Fixed:
    def __init__(self, header: str) -> None:
        self._header = header

    def header(self) -> str:
        return self._header

    def renew(self, refused: str) -> bool:
        del refused
        return False


class _Watched:
    def __init__(self, path: Path, what: str, header: Callable[[str], str]) -> None:
        self._file = SecretFile(path, what)
        self._header = header
        self._lock = threading.Lock()
        self._good = header(self._file.read())

    def header(self) -> str:
        with self._lock:
            return self._now(self._file.read())

    def renew(self, refused: str) -> bool:
        with self._lock:
            return self._now(self._file.again()) != refused

    def _now(self, secret_text: str) -> str:
        # What is written there now may be nothing that can be sent: then the last that could stays.
        with suppress(ConfigError):
            self._good = self._header(secret_text)
        return self._good


class _Granted:
    """Tokens of an OAuth 2 server, each asked for before the one before it ends."""

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
        self._renew_at = self._ends_at = float("-inf")
        self._failure: tuple[float, BrokerError] | None = None

    def header(self) -> str:
        with self._lock:
            now = self._now()
            if self._token is None or now >= self._renew_at:
                self._ask(now)
            return f"Bearer {self._token}"

    def renew(self, refused: str) -> bool:
        with self._lock:
            if refused != f"Bearer {self._token}":
                return True
            # Refused before its time: a token that was revoked, or a server that took other keys.
            self._token = None
            try:
                self._ask(self._now())
            except BrokerError:
                return False
            return refused != f"Bearer {self._token}"

    def _ask(self, now: float) -> None:
        """Get a token; the one at hand stays while it is good, whatever becomes of the next."""
        if self._failure is not None and now < self._failure[0]:
            failure: BrokerError | None = self._failure[1]
        else:
            try:
                self._token, life = self._request()
            except BrokerError as error:
                failure = error
                self._failure = (self._now() + _AGAIN_SECONDS, error)
            else:
                self._failure = failure = None
                # Before its end by a tenth, a minute at most: time for several attempts.
                self._renew_at, self._ends_at = now + life - min(60.0, life / 10), now + life
        if failure is not None and (self._token is None or now >= self._ends_at):
            raise type(failure)(str(failure))

    def _request(self) -> tuple[str, float]:
        address, settings = self._address, self._settings
        if self._file is not None:
            password = self._file.read()
        else:
            password = secret(settings.client_secret, None, "client_secret") or ""
        form = {"grant_type": "client_credentials", **({"scope": settings.scope} if settings.scope else {})}
        try:
            # Both encoded before they are joined, as RFC 6749 (2.3.1) wants it.
            answer = self._session.post(
                settings.token_url,
                data=form,
                headers={
                    "Accept": "application/json",
                    # Asked now and then: nothing is kept open for it.
                    "Connection": "close",
                    "Authorization": _basic(quote_plus(settings.client_id), quote_plus(password)),
                },
                timeout=limit(self._timeout),  # type: ignore[arg-type]  # requests hands it to urllib3 as it is
                allow_redirects=False,
                stream=True,
            )
            with answer:
                body = b""
                for piece in answer.iter_content(65536):
                    body += piece
                    if len(body) > _MOST_BYTES:
                        break
        except requests.RequestException as error:
            raise explain_transport(address, "", error, self._timeout, "the token server") from None
        finally:
            # A server need not say that it closes: a connection that was kept would fail the next request.
            self._session.close()
        return _token_in(body, answer.status_code, address, settings.client_id)


def _token_in(body: bytes, status: int, address: Address, client: str) -> tuple[str, float]:
    """The token and how many seconds it is good for.

    Raises:
        BrokerError: there is none.
    """
    place = f"{address.where}{address.path}"
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    told = document if isinstance(document, dict) else {}
    if status in (400, 401, 403):
        reason = told.get("error_description") or told.get("error")
        said = f" ({reason[:200]})" if isinstance(reason, str) else ""
        raise Refused(
            f"{place}: {status} no token for client {client!r}{said}; check client_id, client_secret and scope"
        )
    if status == 503:
        raise Unreachable(f"{place}: 503 no token for client {client!r}; the token server is not ready, try later")
    if status != 200:
        raise BadAnswer(f"{place}: {status} no token for client {client!r}; is this the token endpoint?")
    token, life = told.get("access_token"), told.get("expires_in", _LIFE_SECONDS)
    if not isinstance(token, str) or not is_token(token):
        raise BadAnswer(f"{place}: an answer without access_token; is this the token endpoint?")
    good = isinstance(life, int | float) and not isinstance(life, bool) and life > 0
    return token, float(life) if good else _LIFE_SECONDS
