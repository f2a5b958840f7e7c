"""Polls the health checks one by one, so that a hanging check neither hides the others nor delays them for long."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ackscope.errors import BadAnswer, BrokerError, Unreachable
from ackscope.failures import FailurePhrase
from exporter.broker.client import ManagementClient
from exporter.broker.endpoints.health import CERTIFICATES, HealthEndpoint, checks_for
from exporter.broker.fetch import UNRESPONSIVE_RETRY_SECONDS
from exporter.broker.fields import Version

CERTIFICATES_MAX_AGE_SECONDS = 600.0
"""Seconds for which the list of all certificates is reused, because the broker reads files to make it."""

_ALWAYS_POLLED = "alarms"
"""The check that is polled every time: alarms block publishers, and its answer shows that the node responds."""

_IMMEDIATE_SECONDS = 0.5
"""Seconds. An earlier connection error is not a hang."""

_FIRST_TIMEOUT_SECONDS = 2.0
"""Timeout in seconds of a check if others have answered, doubled at every retry. Checks take milliseconds."""

_SLOWDOWN_FACTOR = 4.0
"""A check always gets at least this multiple of its latest response time."""

_POLL_HANG_SECONDS = 3.0
"""Seconds for all hanging checks of a poll. After them each gets `_MIN_TIMEOUT_SECONDS`, so that others stay fresh."""

_MIN_TIMEOUT_SECONDS = 0.5

_MAX_CONSECUTIVE_HANGS = 3
"""After this many hanging checks in a row the poll is aborted."""


@dataclass(frozen=True, slots=True)
class _Hang:
    """A hanging check: its latest timeout in seconds, and when it is retried (monotonic clock)."""

    timeout: float
    retry_at: float


class _CachedAnswer(NamedTuple):
    """An answer, and the time of its request (monotonic clock)."""

    requested_at: float
    answer: dict[str, Any]


class HealthPoller:
    """Polls the checks that the broker's version has; remembers which are missing and which hang.

    Args:
        now: monotonic clock in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._reset(None)

    def _reset(self, version: Version | None) -> None:
        self._version = version
        self._missing: set[str] = set()
        self._hanging: dict[str, _Hang] = {}
        self._response_seconds: dict[str, float] = {}
        self._cache: dict[str, _CachedAnswer] = {}

    def poll(
        self, client: ManagementClient, path: str, version: Version | None, max_age: float = 0.0
    ) -> dict[str, Any]:
        """Return the answer of each check by name: {"status", "body"}, with "age" if it is reused, or {"error"}.

        Args:
            client: sends the requests.
            path: common prefix of all checks.
            version: version of the broker.
            max_age: seconds for which a check that passed is not polled again; the alarms check always is.

        Raises:
            BrokerError: the node is unreachable, or no check could be read.
        """
        if version != self._version:
            self._reset(version)
        missing = set(self._missing)
        answers: dict[str, Any] = {}
        failure: BrokerError | None = None
        consecutive_hangs, hang_seconds, retried = 0, 0.0, False
        for check in (*checks_for(version), CERTIFICATES):
            if check.name in missing:
                continue
            began = self._now()
            cached = self._cache.get(check.name)
            if cached is not None and began < cached.requested_at + _max_age(check, max_age):
                answers[check.name] = {**cached.answer, "age": began - cached.requested_at}
                continue
            self._cache.pop(check.name, None)
            hang = self._hanging.get(check.name)
            # Retry one hanging check per poll. Retrying all would take as long as the poll in which they first hung.
            if hang is not None and (retried or began < hang.retry_at):
                answers[check.name] = _hang_error(hang)
                continue
            retried = retried or hang is not None
            answered = any("status" in answer for answer in answers.values())
            timeout = self._timeout(check, hang_seconds) if answered else None
            try:
                answer = client.request(f"{path}/{check.path}", accepted=(200, 404, 503), timeout=timeout)
            except Unreachable as error:
                seconds = self._now() - began
                consecutive_hangs, hang_seconds = consecutive_hangs + 1, hang_seconds + seconds
                if seconds < _IMMEDIATE_SECONDS or not answered:
                    raise
                # If one node of a cluster hangs, some checks hang and most do not. The latter must stay visible.
                hang = _Hang(seconds, began + seconds + UNRESPONSIVE_RETRY_SECONDS)
                self._hanging[check.name] = hang
                if consecutive_hangs == _MAX_CONSECUTIVE_HANGS and check is not CERTIFICATES:
                    # The node itself froze during this poll: every further check would cost its whole timeout.
                    where = f"{client.address.where}{client.address.path}{path}"
                    raise Unreachable(
                        f"{where}: {FailurePhrase.NO_ANSWER} {hang_seconds:.0f} s "
                        f"to {_MAX_CONSECUTIVE_HANGS} checks in a row"
                    ) from None
                answers[check.name] = _hang_error(hang)
                failure = error
                continue
            except BrokerError as error:
                answers[check.name] = {"error": str(error)}
                failure = error
                continue
            consecutive_hangs = 0
            if self._hanging.pop(check.name, None) is not None:
                # The cause of the hang may be over for the other checks too.
                retried = False
                self._hanging = {name: replace(each, retry_at=began) for name, each in self._hanging.items()}
            self._response_seconds[check.name] = self._now() - began
            if answer.status == 404:
                missing.add(check.name)
            else:
                answers[check.name] = {"status": answer.status, "body": answer.body}
                if answer.status == 200 or check is CERTIFICATES:
                    self._cache[check.name] = _CachedAnswer(began, answers[check.name])
        if not any("status" in answer for answer in answers.values()):
            raise failure or BadAnswer(
                f"{client.address.where}{client.address.path}{path}: 404 to every health check; "
                "is this the management API of RabbitMQ 3.8 or later, and the path prefix of the address right?"
            )
        self._missing = missing
        return answers

    def _timeout(self, check: HealthEndpoint, hang_seconds: float) -> float:
        """Return the timeout of a check in seconds. This poll has already lost `hang_seconds` to hanging checks."""
        hang, response_seconds = self._hanging.get(check.name), self._response_seconds.get(check.name)
        required = _SLOWDOWN_FACTOR * (response_seconds or 0.0)
        if hang is None:
            return max(_MIN_TIMEOUT_SECONDS, min(_FIRST_TIMEOUT_SECONDS, _POLL_HANG_SECONDS - hang_seconds), required)
        longer = max(_FIRST_TIMEOUT_SECONDS, 2 * hang.timeout)
        # A check that never answered may be slow by nature: its timeout grows until it answers.
        return longer if response_seconds is None else max(min(longer, _POLL_HANG_SECONDS), required)


def _max_age(check: HealthEndpoint, passed: float) -> float:
    """Return the seconds for which an answer of this check is reused; `passed` is the limit for passed checks."""
    if check is CERTIFICATES:
        return CERTIFICATES_MAX_AGE_SECONDS
    return 0.0 if check.name == _ALWAYS_POLLED else passed


def _hang_error(hang: _Hang) -> dict[str, str]:
    return {
        "error": f"{FailurePhrase.NO_ANSWER} {hang.timeout:.1f} s, while other checks answered; "
        f"retried every {UNRESPONSIVE_RETRY_SECONDS:g} s"
    }
