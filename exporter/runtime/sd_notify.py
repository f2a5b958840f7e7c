"""sd_notify(3): reports the service state to systemd through `$NOTIFY_SOCKET`."""

import os
import socket
import time
from collections.abc import Mapping

from ackscope.log import get_logger

log = get_logger(__name__)


class SystemdNotifier:
    """Sends notifications to systemd; does nothing if there is no `$NOTIFY_SOCKET`.

    Args:
        address: socket path; `@` marks the abstract namespace. None disables notifications.
        watchdog: watchdog timeout in seconds; None if there is no watchdog.
    """

    def __init__(self, address: str | None, watchdog: float | None = None) -> None:
        self._address, self.watchdog = address, watchdog

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ, pid: int | None = None) -> "SystemdNotifier":
        """Configure from `$NOTIFY_SOCKET`, `$WATCHDOG_USEC` and `$WATCHDOG_PID`; invalid values are ignored."""
        address = environ.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return cls(None)
        meant = environ.get("WATCHDOG_PID")
        microseconds = environ.get("WATCHDOG_USEC", "")
        ours = meant is None or meant == str(os.getpid() if pid is None else pid)
        watched = ours and microseconds.isdecimal() and int(microseconds) > 0
        return cls(address, int(microseconds) / 1e6 if watched else None)

    @property
    def enabled(self) -> bool:
        """Whether notifications are sent."""
        return self._address is not None

    def ready(self, status: str) -> None:
        """Report that startup or a reload has finished."""
        self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """Report that a reload has begun; `ready` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Report that the service is stopping."""
        self._send("STOPPING=1")

    def ping_watchdog(self) -> None:
        """Reset the watchdog timer."""
        if self.watchdog is not None:
            self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        path = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
                manager.settimeout(1.0)
                manager.sendto("\n".join(lines).encode(), path)
        except OSError as error:
            log.warning("sd_notify failed", state=lines[0], error=error.strerror or str(error))
