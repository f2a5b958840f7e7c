from collections import Counter

from probes.verify.claims import CLAIMS
from probes.verify.report import GROUPS


def test_there_is_one_claim_for_each_number():
    """S01 to S53, then A01 to A25 over AMQP 1.0, in order."""
    ids = [f"S{number:02}" for number in range(1, 54)] + [f"A{number:02}" for number in range(1, 26)]

    assert ids == [claim.id for claim in CLAIMS]


def test_names_are_unique_and_groups_are_known():
    """Names are what scripts hold on to."""
    assert [] == [name for name, count in Counter(claim.name for claim in CLAIMS).items() if count > 1]
    assert set(GROUPS) == {claim.group for claim in CLAIMS}


def test_every_claim_says_what_is_documented_and_where():
    """In a sentence."""
    assert [] == [claim.id for claim in CLAIMS if not (claim.documented.endswith(".") and claim.source)]
