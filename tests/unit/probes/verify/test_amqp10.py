"""What claims about AMQP 1.0 say where it cannot be checked."""

import asyncio
import sys

import pytest

from probes.settings import AmqpSettings
from probes.verify.amqp10 import GROUP, verdict
from probes.verify.claims import CLAIMS
from probes.verify.run import check_all
from probes.verify.verify_claim import CheckContext, ClaimVerdict

NATIVE = [claim for claim in CLAIMS if claim.group == GROUP]


def rows(version):
    """The rows of all claims about AMQP 1.0, on a broker that nobody can reach."""
    server = AmqpSettings(url="amqp://127.0.0.1:1").server()
    return asyncio.run(check_all(CheckContext(server=server, version=version, prefix="p"), NATIVE))


def test_an_older_broker_is_not_asked():
    """Before 4.0 it speaks the protocol through a plugin at most, with other semantics."""
    found = rows((3, 10, 8))

    assert {ClaimVerdict.NOT_APPLICABLE} == {row.result.verdict for row in found}
    assert "this is about RabbitMQ 4.0 and later" == found[0].result.observed
    assert all(row.settled for row in found)


def test_without_the_library_nothing_is_checked_and_the_reason_names_the_extra(monkeypatch):
    """The claims about 0-9-1 keep their exit code."""
    monkeypatch.setitem(sys.modules, "proton", None)
    found = rows((4, 3, 6))

    assert {ClaimVerdict.NOT_APPLICABLE} == {row.result.verdict for row in found}
    assert all("ackscope[amqp10]" in row.result.observed for row in found)


@pytest.mark.parametrize(("holds", "words", "because"), [(True, "so", ""), (False, "otherwise", "a source")])
def test_a_reason_is_given_for_a_difference_only(holds, words, because):
    """What holds needs none."""
    found = verdict(holds=holds, so="so", otherwise="otherwise", evidence=["e"], because="a source")

    assert (words, because, ("e",)) == (found.observed, found.because, found.evidence)
