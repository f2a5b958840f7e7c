"""Checks claims on one broker. Most run in parallel, those that measure rates run alone, disturbing ones last."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ackscope.errors import BrokerError
from ackscope.log import get_logger
from probes.verify.frames import Closed
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_log = get_logger(__name__)

_TOGETHER = 4
"""Number of parallel checks. Each mostly waits, and more could starve each other on a small machine."""


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """The result of one claim.

    Attributes:
        seconds: duration of the check; 0 without one.
        broken: whether the check itself failed, and not the broker. The traceback is in the log.
    """

    claim: VerifyClaim
    result: Observed
    seconds: float = 0.0
    broken: bool = False

    @property
    def settled(self) -> bool:
        """Whether no action is needed: the claim holds, does not apply, or a cited source explains the difference."""
        calm = {ClaimVerdict.HOLDS, ClaimVerdict.NOT_APPLICABLE, ClaimVerdict.NEEDS_LAB}
        return not self.broken and (self.result.verdict in calm or bool(self.result.because))


ProgressCallback = Callable[[Sequence[VerifyClaim], int], None]
"""Callback that gets the claims that are being checked, and the number of finished ones."""


async def check_all(
    ground: CheckContext, claims: Sequence[VerifyClaim], on_progress: ProgressCallback = lambda _, __: None
) -> list[ClaimRow]:
    """Check every claim. Returns a row for each, in the given order."""
    rows: dict[str, ClaimRow] = {}
    under_way: list[VerifyClaim] = []

    async def one(claim: VerifyClaim) -> None:
        under_way.append(claim)
        on_progress(under_way, len(rows))
        try:
            rows[claim.id] = await _check(ground, claim)
        finally:
            under_way.remove(claim)
            on_progress(under_way, len(rows))

    slots = asyncio.Semaphore(_TOGETHER)

    async def in_turn(claim: VerifyClaim) -> None:
        async with slots:
            await one(claim)

    async with asyncio.TaskGroup() as together:
        for claim in claims:
            if not (claim.alone or claim.lab):
                together.create_task(in_turn(claim))
    for claim in sorted((claim for claim in claims if claim.alone or claim.lab), key=lambda claim: claim.lab):
        await one(claim)
    return [rows[claim.id] for claim in claims]


async def _check(ground: CheckContext, claim: VerifyClaim) -> ClaimRow:
    if claim.lab and ground.disturb is None:
        why = "needs a broker that may be disturbed: ackscope verify --lab"
        return ClaimRow(claim, Observed(verdict=ClaimVerdict.NEEDS_LAB, observed=why, evidence=()))
    began = time.monotonic()
    broken = False
    try:
        async with asyncio.timeout(claim.seconds) as limit:
            result = await claim.check(ground)
    except TimeoutError as error:
        result = _undecided(f"not finished within {claim.seconds:g} s" if limit.expired() else f"timed out: {error}")
    except Closed as error:
        result = _undecided(f"the broker closed the channel or connection of the check: {error}")
    except BrokerError as error:
        result = _undecided(str(error))
    # The boundary: an error in one check must not end the others.
    except Exception as error:  # noqa: BLE001  see the line above
        _log.exception("check failed unexpectedly", claim=claim.id)
        result, broken = _undecided(f"the check itself failed: {type(error).__name__}: {error}"), True
    return ClaimRow(claim, result, time.monotonic() - began, broken)


def _undecided(why: str) -> Observed:
    return Observed(verdict=ClaimVerdict.INCONCLUSIVE, observed=why, evidence=())
