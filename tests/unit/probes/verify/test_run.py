import asyncio

import pytest

from ackscope.errors import Unreachable
from probes.verify.frames import Closed
from probes.verify.run import check_all
from probes.verify.verify_claim import ClaimVerdict, Observed

HOLDS = Observed(verdict=ClaimVerdict.HOLDS, observed="it does", evidence=("1 of 1",))


def rows_of(ground, *claims):
    """Check these claims and return their rows."""
    return asyncio.run(check_all(ground, claims))


def test_rows_come_in_the_order_of_the_claims(ground, claim):
    """The order of execution does not matter."""
    rows = rows_of(ground, claim("S01", alone=True), claim("S02"), claim("S03", alone=True), claim("S04"))

    assert ["S01", "S02", "S03", "S04"] == [row.claim.id for row in rows]


def test_what_measures_runs_alone_and_what_disturbs_runs_last(ground, claim):
    """A rate measured beside other checks would include them; a restarted broker would abort other checks."""
    seen, running = [], set()

    def check(id_):
        async def watched(_):
            running.add(id_)
            await asyncio.sleep(0)
            seen.append((id_, len(running)))
            running.discard(id_)
            return HOLDS

        return watched

    ground.disturb = object()
    claims = [
        claim("S01", check("S01"), lab=True),
        claim("S02", check("S02"), alone=True),
        claim("S03", check("S03")),
        claim("S04", check("S04")),
    ]
    rows_of(ground, *claims)

    assert {"S03", "S04"} == {id_ for id_, _ in seen[:2]}
    assert [("S02", 1), ("S01", 1)] == seen[2:]


def test_only_a_few_run_side_by_side(ground, claim):
    """This keeps checks from starving on a small machine."""
    running, most = 0, 0

    async def watched(_):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return HOLDS

    rows_of(ground, *(claim(f"S{number:02}", watched) for number in range(1, 13)))

    assert 4 == most


def test_a_check_that_comes_to_no_end_could_not_tell(ground, claim):
    """The other checks are not delayed."""

    async def hangs(_):
        await asyncio.Event().wait()

    late, fine = rows_of(ground, claim("S01", hangs, seconds=0.01), claim("S02"))

    assert (ClaimVerdict.INCONCLUSIVE, "not finished within 0.01 s") == (
        late.result.verdict,
        late.result.observed,
    )
    assert ClaimVerdict.HOLDS is fine.result.verdict


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Closed(541, "INTERNAL_ERROR"), "the broker closed the channel or connection of the check: 541 INTERNAL_ERROR"),
        (Unreachable("localhost:1: refused"), "localhost:1: refused"),
        (TimeoutError("no message in q"), "timed out: no message in q"),
    ],
)
def test_what_the_broker_does_to_a_check_is_no_fault_of_the_check(ground, claim, error, reason):
    """It is a result with a reason, without a traceback."""

    async def fails(_):
        raise error

    (row,) = rows_of(ground, claim("S01", fails))

    assert (ClaimVerdict.INCONCLUSIVE, reason, False) == (row.result.verdict, row.result.observed, row.broken)


def test_a_broken_check_is_reported_as_such_and_the_others_go_on(ground, claim, caplog):
    """Its traceback is in the log; the row counts as open whatever it says."""

    async def breaks(_):
        raise KeyError("tag")

    broken, fine = rows_of(ground, claim("S01", breaks), claim("S02"))

    assert "the check itself failed: KeyError: 'tag'" == broken.result.observed
    assert (True, False) == (broken.broken, broken.settled)
    assert ClaimVerdict.HOLDS is fine.result.verdict
    assert "check failed unexpectedly" in caplog.text


def test_without_a_lab_nothing_that_disturbs_is_run(ground, claim):
    """Somebody's own broker is never restarted."""

    async def restarts(_):
        raise AssertionError

    (row,) = rows_of(ground, claim("S01", restarts, lab=True))

    assert (ClaimVerdict.NEEDS_LAB, True) == (row.result.verdict, row.settled)


def test_progress_names_what_is_being_checked(ground, claim):
    """And how many are done."""
    reported = []
    asyncio.run(check_all(ground, [claim("S01")], lambda claims, done: reported.append(([c.id for c in claims], done))))

    assert [(["S01"], 0), ([], 1)] == reported
