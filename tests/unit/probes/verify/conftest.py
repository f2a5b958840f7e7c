"""A test ground without a broker, and claims made for a test."""

import pytest

from ackscope.address import parse_amqp
from probes.settings import AmqpServer
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim


async def _holds(_):
    return Observed(verdict=ClaimVerdict.HOLDS, observed="it does", evidence=("1 of 1",))


@pytest.fixture
def ground():
    """Return a ground of a broker that is never contacted."""
    return CheckContext(
        server=AmqpServer(parse_amqp("amqp://127.0.0.1:1")), version=(4, 3, 6), prefix="ackscope.probe.verify.ab12"
    )


@pytest.fixture
def claim():
    """Make a claim; it holds unless another check is given."""

    def make(id_="S01", check=_holds, **parts):
        texts = {"name": f"claim-{id_}", "group": "delivery", "documented": "It does.", "source": "a guide"}
        return VerifyClaim(id=id_, check=check, **(texts | parts))

    return make
