"""Asks the health checks one by one, so that one that hangs hides no other, nor keeps it waiting for long."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ackscope.errors import BadAnswer, BrokerError, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.fetch import SILENT_SECONDS
from exporter.broker.fields import Version
from exporter.broker.health import CERTIFICATES, Check, checks_of

CERTIFICATES_SECONDS = 600.0
"""How long a list of all certificates is good: the broker reads their files for it."""

_ALWAYS = "alarms"
"""The check that is asked in every reading: publishers wait for what it tells, and its answer is a sign of life."""

_AT_ONCE_SECONDS = 0.5
"""An error that came sooner is no hanging."""

_PATIENCE_SECONDS = 2.0
"""Checks take milliseconds: where others answered, one is waited for so long, and twice as long each further time."""

_SLOWER = 4.0
"""Times as long as it took last, one is waited for in any case."""

_READING_SECONDS = 3.0
"""All that hang in one reading are waited for so long, and then half a second each: the others must not grow old."""

_LEAST_SECONDS = 0.5

_HUNG = 3
"""Checks in a row without an answer, after which the others are not waited for either."""


@dataclass(frozen=True, slots=True)
class _Silence:
    """Of a check without an answer: how often in a row, how long it was waited for last, and until when it rests."""

    times: int
    waited: float
    until: float


class _Kept(NamedTuple):
    """An answer, and when it was asked for."""

    asked: float
    answer: dict[str, Any]


class HealthFetcher:
    """Asks the checks that the version at hand has; remembers those that it turned out not to have, and which hang.

    Args:
        now: seconds of a clock that only goes forward.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._version: Version | None = None
        self._begin(None)

    def _begin(self, version: Version | None) -> None:
        self._version = version
        self._lacking: set[str] = set()
        self._silent: dict[str, _Silence] = {}
        self._took: dict[str, float] = {}
        self._kept: dict[str, _Kept] = {}

    def fetch(
        self, client: ManagementClient, path: str, version: Version | None, good_for: float = 0.0
    ) -> dict[str, Any]:
        """Check name -> {"status", "body"}, with "age" where it was asked before, or {"error"}.

        Args:
            client: asks.
            path: of all checks.
            version: of the broker.
            good_for: seconds for which a check that passed is not asked anew; that for alarms always is.

        Raises:
            BrokerError: the node cannot be reached, or no check at all could be asked.
        """
        if version != self._version:
            self._begin(version)
        lacking = set(self._lacking)
        answers: dict[str, Any] = {}
        failure: BrokerError | None = None
        hung, waited, tried = 0, 0.0, False
        for check in (*checks_of(version), CERTIFICATES):
            if check.name in lacking:
                continue
            began = self._now()
            kept = self._kept.get(check.name)
            if kept is not None and began < kept.asked + _good_for(check, good_for):
                answers[check.name] = {**kept.answer, "age": began - kept.asked}
                continue
            self._kept.pop(check.name, None)
            silence = self._silent.get(check.name)
            # One at a time: all that hang, asked in one reading, would make it as long as the first was.
            if silence is not None and (tried or began < silence.until):
                answers[check.name] = _left_alone(silence)
                continue
            tried = tried or silence is not None
            answered = any("status" in answer for answer in answers.values())
            within = self._patience(check, waited) if answered else None
            try:
                answer = client.ask(f"{path}/{check.path}", understood=(200, 404, 503), within=within)
            except Unreachable as error:
                took = self._now() - began
                hung, waited = hung + 1, waited + took
                if took < _AT_ONCE_SECONDS or not answered:
                    raise
                # With a node of a cluster hung some checks hang and most do not: those must be seen.
                silence = _Silence(silence.times + 1 if silence else 1, took, began + took + SILENT_SECONDS)
                self._silent[check.name] = silence
                if hung == _HUNG and check is not CERTIFICATES:
                    # The node itself froze in the midst of it: one after the other would wait its whole time.
                    where = f"{client.address.where}{client.address.path}{path}"
                    raise Unreachable(f"{where}: no answer within {waited:.0f} s to {_HUNG} checks in a row") from None
                answers[check.name] = _left_alone(silence)
                failure = error
                continue
            except BrokerError as error:
                answers[check.name] = {"error": str(error)}
                failure = error
                continue
            hung = 0
            if self._silent.pop(check.name, None) is not None:
                # What held it up may be over for the others too.
                tried = False
                self._silent = {name: replace(each, until=began) for name, each in self._silent.items()}
            self._took[check.name] = self._now() - began
            if answer.status == 404:
                lacking.add(check.name)
            else:
                answers[check.name] = {"status": answer.status, "body": answer.body}
                if answer.status == 200 or check is CERTIFICATES:
                    self._kept[check.name] = _Kept(began, answers[check.name])
        if not any("status" in answer for answer in answers.values()):
            raise failure or BadAnswer(
                f"{client.address.where}{client.address.path}{path}: 404 to every health check; "
                "is this the management API of RabbitMQ 3.8 or later, and the path prefix of the address right?"
            )
        self._lacking = lacking
        return answers

    def _patience(self, check: Check, waited: float) -> float:
        """Seconds that an answer is waited for.

        Args:
            check: the one that is asked.
            waited: seconds that others have hung in this reading.
        """
        silence, took = self._silent.get(check.name), self._took.get(check.name)
        needs = _SLOWER * (took or 0.0)
        if silence is None:
            return max(_LEAST_SECONDS, min(_PATIENCE_SECONDS, _READING_SECONDS - waited), needs)
        longer = max(_PATIENCE_SECONDS, 2 * silence.waited)
        # One that never answered may be slow by nature: it is told in the end, for each time it is given longer.
        return longer if took is None else max(min(longer, _READING_SECONDS), needs)


def _good_for(check: Check, passed: float) -> float:
    """Seconds for which an answer of this check is good."""
    if check is CERTIFICATES:
        return CERTIFICATES_SECONDS
    return 0.0 if check.name == _ALWAYS else passed


def _left_alone(silence: _Silence) -> dict[str, str]:
    return {
        "error": f"no answer within {silence.waited:.1f} s, while other checks answered; it is asked every "
        f"{SILENT_SECONDS:g} s"
    }
