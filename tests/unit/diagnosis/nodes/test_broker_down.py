import pytest

from ackscope.records import ProbeState
from ackscope.snapshot import Part
from tests.unit.diagnosis.nodes.machines import HANGS, REFUSED, handshake_probe, node, outcome, round_trip_probe, silent
from tests.unit.diagnosis.pictures import NODE, film, found, look, only, text

RULE = "broker-down"
TURNED_AWAY = "broker:5672: connection refused; is RabbitMQ listening there?"


def lost(probe="confirm", stream="classic", **fields):
    """A stream whose connection ended, and which is refused since."""
    failed = {"state": ProbeState.FAILED, "reason": TURNED_AWAY, "success": False}
    return outcome(probe, stream, **{**failed, **fields})


def paused(probe="prefetch"):
    """A probe between two rounds, which has not noticed."""
    return outcome(probe, "quorum")


@pytest.mark.parametrize("refused", [lost(), lost("rtt", "rtt"), handshake_probe(tcp=TURNED_AWAY)])
@pytest.mark.parametrize("beside", [(), (paused("prefetch"),), (paused("redelivery"), paused("outcomes"))])
def test_a_broker_that_refuses_everything_is_down(refused, beside):
    """Information while a restart looks the same; probes that are idle prove nothing."""
    early = only(look(film(silent(REFUSED), until=40), outcomes=(refused, *beside)))
    late = only(look(film(silent(REFUSED), until=90), outcomes=(refused, *beside)))

    assert [(RULE, "info", NODE), (RULE, "critical", NODE)] == [
        (each.rule, each.severity.value, each.subject.name) for each in (early, late)
    ]
    assert "A restart looks the same" in text(early).summary
    assert "no message gets in or out" in text(late).summary
    assert {"api_error", "probe_state"} <= {each.key for each in late.evidence}


def test_without_probes_only_the_management_api_is_known():
    """Its plugin may be off."""
    finding = only(look(film(silent(REFUSED), until=90)))

    assert (RULE, "warning", NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert "not known whether clients are served" in text(finding).summary
    assert "rabbitmq_management" in text(finding).cause


def test_of_several_nodes_the_cluster_is_the_subject():
    """None of them answers."""
    nodes = (node(), node("rabbit@two"))
    finding = only(look(film(silent(REFUSED, nodes=nodes), until=90), outcomes=(lost(),)))

    assert (RULE, "cluster") == (finding.rule, finding.subject.kind)


@pytest.mark.parametrize(
    ("until", "why", "outcomes"),
    [
        (25, REFUSED, (lost(),)),
        (90, REFUSED, (lost(), round_trip_probe())),
        (90, REFUSED, (round_trip_probe(),)),
        (90, HANGS, (lost(),)),
    ],
    ids=["it has just begun", "one probe is served", "suspended listeners", "it hangs"],
)
def test_other_reasons_for_silence_are_no_broker_that_is_down(until, why, outcomes):
    """It may stop, refuse new clients only, or hang."""
    assert RULE not in {rule for rule, _, _ in found(look(film(silent(why), until=until), outcomes=outcomes))}


def test_what_was_never_read_may_have_a_wrong_address():
    """The errors of the polls say so."""
    never = Part(error=REFUSED)
    frame = dict.fromkeys(("overview", "nodes", "health", "queues"), never)
    result = look(film(lambda _: frame, until=90), outcomes=(lost(connects=0),))

    assert RULE not in {rule for rule, _, _ in found(result)}
