"""What everybody reads of the probes."""

from importlib import import_module

from ackscope.records import Outcome
from probes.catalogue import NOT_ACKED_BY_DESIGN, PROBES
from probes.settings import ProbesSettings


def test_a_declaration_is_whole():
    """It names its settings, which have defaults, its module, and a summary that fits into 80 columns."""
    for name, probe in PROBES.items():
        assert isinstance(ProbesSettings().of(probe), probe.settings)
        assert callable(import_module(probe.module).streams)
        assert (name, True) == (probe.name, len(probe.summary) <= 65)


def test_a_probe_that_is_refused_by_design_is_no_failure():
    """Its messages must be nacked, and do not count in a share of acked messages; all other probes expect acks."""
    assert {"nack", "reject"} == set(NOT_ACKED_BY_DESIGN)
    assert {Outcome.NACKED} == {PROBES[name].expected for name in NOT_ACKED_BY_DESIGN}


def test_probes_that_act_like_applications_come_first():
    """Then those that time steps, and last those whose messages are refused."""
    assert ["confirm", "delivery", "settle", "streaming", "handshake"] == list(PROBES)[:5]
    assert ["nack", "reject"] == list(PROBES)[-2:]
    sending = {"confirm", "delivery", "settle", "streaming", "nack", "reject"}
    assert sending == {name for name, each in PROBES.items() if each.sends}
