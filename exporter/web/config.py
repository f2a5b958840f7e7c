"""The web configuration in force. It follows changes of its files and keeps the last valid version."""

import ssl
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from ackscope.clock import Clock, SystemClock
from ackscope.errors import ConfigError
from ackscope.log import get_logger
from ackscope.settings import load
from exporter.web.http import Response
from exporter.web.limiter import RateLimiter
from exporter.web.settings import WebSettings
from exporter.web.tls import certificate_files, has_allowed_name, make_context
from exporter.web.users import BasicAuthUsers

log = get_logger(__name__)

_AGAIN_SECONDS = 10.0

_Stamp = tuple[tuple[str, int, int, int] | None, ...]
"""Identity of a file's version: path, inode, size, mtime; None if it does not exist."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Parsed configuration, and the versions of the files that it was read from."""

    settings: WebSettings = field(default_factory=WebSettings)
    context: ssl.SSLContext | None = None
    users: BasicAuthUsers = field(default_factory=lambda: BasicAuthUsers({}))
    watched: tuple[Path, ...] = ()
    stamp: _Stamp = ()


class WebConfig:
    """TLS, users, headers and rate limit.

    A new version of the file, a certificate or a key takes effect with the next connection or request. An invalid one
    is logged once and the previous version stays. Enabling TLS and changing the rate limit need a restart.

    Args:
        path: the file; None means plain HTTP without authentication.
        clock: clock of the rate limiter.

    Raises:
        ConfigError: the file, or one that it names, is invalid. The message is one line.
    """

    def __init__(self, path: Path | None = None, clock: Clock | None = None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._loaded = _Loaded() if path is None else _load(path)
        self._failed: _Stamp | None = None
        self._again, self._problem = 0.0, ""
        self._clock = clock or SystemClock()
        rate = self._loaded.settings.rate_limit
        self._limiter = RateLimiter(rate.interval, rate.burst, self._clock)

    @classmethod
    def load(cls, path: Path) -> "WebConfig":
        """Read and validate a file.

        Raises:
            ConfigError: as in the class.
        """
        return cls(path)

    @property
    def tls(self) -> bool:
        """Whether TLS is enabled."""
        return self._loaded.context is not None

    @property
    def has_users(self) -> bool:
        """Whether requests need a password."""
        return bool(self._loaded.settings.basic_auth_users)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every response; an empty value removes a default header."""
        return self._loaded.settings.http_server_config.headers

    def context(self) -> ssl.SSLContext | None:
        """The TLS context for a new connection; None without TLS."""
        return self._current().context

    def admits(self, connection: ssl.SSLObject | None) -> bool:
        """Whether the certificate of the client has one of the names in `client_allowed_sans`, if there are any."""
        tls = self._loaded.settings.tls_server_config
        if tls is None or not tls.client_allowed_sans:
            return True
        return connection is not None and has_allowed_name(connection, tls.client_allowed_sans)

    def must_hash(self, authorization: str) -> bool:
        """Whether `refuse` would have to hash the password of an Authorization header, which takes 0.1 s."""
        return self._current().users.must_hash(authorization)

    def refuse(self, headers: Mapping[str, str]) -> Response | None:
        """Return the response to a rejected request; None if the request is accepted.

        Args:
            headers: names in lower case.
        """
        loaded = self._current()
        if not self._limiter.admit():
            return Response(b"too many requests\n", status=HTTPStatus.TOO_MANY_REQUESTS)
        if loaded.users.admit(headers.get("authorization", "")):
            return None
        challenge = (("WWW-Authenticate", 'Basic realm="ackscope", charset="UTF-8"'),)
        return Response(b"unauthorized\n", status=HTTPStatus.UNAUTHORIZED, headers=challenge)

    def _current(self) -> _Loaded:
        if self._path is None:
            return self._loaded
        with self._lock:
            stamp, now = _stamp(self._loaded.watched), self._clock.now().mono
            # Retry after a while even if nothing changed: the problem may be in a file that only the new version names.
            if stamp != self._loaded.stamp and (stamp != self._failed or now >= self._again):
                self._follow(self._path, stamp)
                self._again = now + _AGAIN_SECONDS
            return self._loaded

    def _follow(self, path: Path, stamp: _Stamp) -> None:
        try:
            loaded = _load(path)
            problem = (
                "TLS can only be turned on or off with a restart" if self.tls != (loaded.context is not None) else ""
            )
        except ConfigError as error:
            problem = str(error).removeprefix(f"{path}: ")
        if not problem:
            loaded.users.remember(self._loaded.users)
            self._loaded, self._failed, self._problem = loaded, None, ""
            log.info("web configuration reloaded", file=str(path))
            return
        if problem != self._problem:
            log.warning("web configuration not reloaded, keeping the previous one", file=str(path), error=problem)
        self._failed, self._problem = stamp, problem


def _load(path: Path) -> _Loaded:
    settings = load(WebSettings, path, {})
    tls = settings.tls_server_config
    watched = (path, *(certificate_files(tls, path.parent) if tls else ()))
    stamp = _stamp(watched)  # taken before reading, so that a change meanwhile is detected next time
    try:
        context = make_context(tls, path.parent) if tls else None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    users = BasicAuthUsers({name: hashed.get_secret_value() for name, hashed in settings.basic_auth_users.items()})
    return _Loaded(settings, context, users, watched, stamp)


def _stamp(paths: Iterable[Path]) -> _Stamp:
    return tuple(_seen(path) for path in paths)


def _seen(path: Path) -> tuple[str, int, int, int] | None:
    try:
        it = path.stat()
    except OSError:
        return None
    return (str(path), it.st_ino, it.st_size, it.st_mtime_ns)
