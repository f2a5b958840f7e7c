"""The web configuration at work: it follows its file and its certificates, and keeps the last good one."""

import logging
import socket
import ssl
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from ackscope.clock import Clock, SystemClock
from ackscope.errors import ConfigError
from ackscope.settings import load
from exporter.web.http import Response
from exporter.web.limiter import RateLimiter
from exporter.web.settings import WebSettings
from exporter.web.tls import certificate_files, handshake, has_allowed_name, make_context
from exporter.web.users import BasicAuthUsers

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 10.0

_Stamp = tuple[tuple[str, int, int, int] | None, ...]
"""What tells that a file is another: path, inode, size, time of change; None for one that is not there."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What the file says, and the files that say so, as they were."""

    settings: WebSettings = field(default_factory=WebSettings)
    context: ssl.SSLContext | None = None
    users: BasicAuthUsers = field(default_factory=lambda: BasicAuthUsers({}))
    watched: tuple[Path, ...] = ()
    stamp: _Stamp = ()


class WebConfig:
    """TLS, users, headers, rate.

    A new version of the file, of a certificate or of a key is taken over at the next connection or request; one that
    is wrong is told in the log, once, and the one before stays. Whether there is TLS at all, and the rate, are fixed
    at the start.

    Args:
        path: the file; without it, plain HTTP for everybody.
        clock: of the rate.

    Raises:
        ConfigError: the file, or one that it names, is wrong; one line.
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
        """Read and check a file.

        Raises:
            ConfigError: as the class.
        """
        return cls(path)

    @property
    def tls(self) -> bool:
        """Whether TLS is spoken."""
        return self._loaded.context is not None

    @property
    def headers(self) -> Mapping[str, str]:
        """What every answer bears; an empty value takes away one that is sent otherwise."""
        return self._loaded.settings.http_server_config.headers

    def wrap(self, sock: socket.socket) -> socket.socket:
        """A new connection: the handshake, within the time that is set on it; or nothing where there is no TLS.

        Raises:
            OSError: the handshake failed, or the client's certificate is of nobody who may ask; the socket is closed.
        """
        loaded = self._current()
        if loaded.context is None or loaded.settings.tls_server_config is None:
            return sock
        spoken = handshake(loaded.context, sock)
        allowed = loaded.settings.tls_server_config.client_allowed_sans
        if allowed and not has_allowed_name(spoken, allowed):
            spoken.close()
            raise ssl.SSLError("the client's certificate bears no name of client_allowed_sans")
        return spoken

    def refuse(self, headers: Mapping[str, str]) -> Response | None:
        """The answer to a request that is not let in; None to one that is.

        Args:
            headers: their names in lower case.
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
            # What is wrong may be in a file that only the new version names: it is looked at again after a while.
            if stamp != self._loaded.stamp and (stamp != self._failed or now >= self._again):
                self._follow(self._path, stamp)
                self._again = now + _AGAIN_SECONDS
            return self._loaded

    def _follow(self, path: Path, stamp: _Stamp) -> None:
        try:
            loaded = _load(path)
            problem = "TLS begins and ends with a restart only" if self.tls != (loaded.context is not None) else ""
        except ConfigError as error:
            problem = str(error).removeprefix(f"{path}: ")
        if not problem:
            self._loaded, self._failed, self._problem = loaded, None, ""
            log.info("%s: the new web configuration is in use", path)
            return
        if problem != self._problem:
            log.warning("%s: %s; the web configuration before it stays", path, problem)
        self._failed, self._problem = stamp, problem


def _load(path: Path) -> _Loaded:
    settings = load(WebSettings, path, {})
    tls = settings.tls_server_config
    watched = (path, *(certificate_files(tls, path.parent) if tls else ()))
    stamp = _stamp(watched)  # before they are read: a change meanwhile is seen the next time
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
