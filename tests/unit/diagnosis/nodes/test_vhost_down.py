from ackscope.topology import VHost
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.nodes.machines import check, late, node
from tests.unit.diagnosis.pictures import NODE, film, found, full_text, look, only, text

RULE = "vhost-down"
FAILS = check("virtual-hosts", reason="Some virtual hosts are down")
WELL = check("virtual-hosts", ok=True)


def down(until, state="stopped", checks=lambda _: FAILS, nodes=None):
    """A vhost that is stopped on the only node."""
    shop = VHost(name="my shop", cluster_state={NODE: state})
    return film(lambda t: {"vhosts": (shop,), "health": checks(t), "nodes": nodes or (node(),)}, until=until)


def test_it_is_critical_when_it_stays_down():
    """With the command that starts it again, quoted for a shell."""
    finding = only(look(down(until=10)))

    assert (RULE, "critical", "my shop") == (finding.rule, finding.severity.value, finding.subject.name)
    assert f"rabbitmqctl -n {NODE} restart_vhost -p 'my shop'" in full_text(finding)


def test_a_vhost_that_has_just_failed_is_information():
    """The broker restarts it within seconds."""
    finding = only(look(down(until=10, checks=lambda t: FAILS if t > 5 else WELL)))

    assert ("info", "early", 8.0) == (finding.severity, finding.certainty, finding.facts["critical_after_seconds"])


def test_the_check_knows_that_it_is_over():
    """The list of vhosts is read less often."""
    assert [] == found(look(down(until=20, checks=lambda t: WELL if t > 10 else FAILS)))


def test_the_check_alone_shows_that_some_vhost_is_down():
    """It does not say which: the command that shows it is the first step."""
    finding = only(look(down(until=10, state="running")))

    assert (RULE, "critical", "shop") == (finding.rule, finding.severity.value, finding.subject.name)
    assert "rabbitmqctl list_vhosts name cluster_state" == text(finding).steps[0].command


def test_a_list_that_is_older_than_the_failure_is_waited_for():
    """The list is read less often than the check; the next one shows which vhost it is."""
    shop = (VHost(name="shop", cluster_state={NODE: "running"}),)

    def old(t):
        return {"vhosts": late(shop, 0.0, None), "health": FAILS if t >= 15 else WELL}

    assert [] == found(look(film(old, until=25)))
    assert [(RULE, "critical", "shop")] == found(look(film(old, until=80)))


def test_a_node_that_is_down_is_another_cause():
    """Nothing runs on it."""
    result = look(down(until=10, nodes=(node(running=False),), checks=lambda _: WELL))

    assert RULE not in [finding.rule for finding in result.findings]


def test_a_single_diagnosis_reports_it():
    """Two readings six seconds apart."""
    shop = VHost(name="my shop", cluster_state={NODE: "stopped"})
    window = film(lambda _: {"vhosts": (shop,), "health": FAILS, "nodes": (node(),)}, until=6, every=6)

    assert [(RULE, "critical", "my shop")] == found(look(window, thresholds=Thresholds.as_if_lasting()))
