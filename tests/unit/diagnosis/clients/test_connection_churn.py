from tests.unit.diagnosis.clients.loops import churning, looping, reconnecting, steady, turns
from tests.unit.diagnosis.pictures import film, found, look, only, text


def unseen(t, rate=2.0):
    """Connections that are too brief to be listed."""
    there, consuming = steady(t)
    done = turns(t, rate, 0)
    return {
        "overview": churning(t, connections=done, channels=done),
        "connections": (there,),
        "channels": (consuming,),
    }


def test_an_application_that_reconnects_is_named():
    """By its name, user and host, which do not change."""
    finding = only(look(film(reconnecting, until=40)))

    assert ("connection-churn", "info", "billing") == (finding.rule, finding.severity, finding.subject.name)
    expected = {"client": "billing", "peer": "10.0.0.7", "user": "guest", "cycle_rate": 1.0}
    assert expected == {key: finding.facts[key] for key in expected}
    assert (("billing",), ()) == (finding.involved.clients, finding.involved.connections)


def test_it_is_a_warning_after_five_minutes():
    """The limit is one connection per second."""
    fast = film(lambda t: reconnecting(t, every=0.8), until=330)

    assert [("connection-churn", "warning", "billing")] == found(look(fast))


def test_connections_that_are_never_listed_are_a_finding_about_the_cluster():
    """Only the log shows which client it is."""
    finding = only(look(film(unseen, until=40)))

    assert ("cluster", "shop", "info") == (finding.subject.kind, finding.subject.name, finding.severity)
    assert finding.facts["client"] is None
    assert "granted access to vhost" in text(finding).steps[0].command


def test_the_same_application_is_the_same_subject_in_each_snapshot():
    """The port changes but the name does not, so the finding lasts."""
    first, second = (only(look(film(reconnecting, until=until))) for until in (40, 60))

    assert first.key == second.key


def test_a_deployment_is_not_reported():
    """Every client reconnects once."""

    def frame(t):
        there, consuming = steady(t)
        moved = 5 if t > 30 else 0
        return {
            "overview": churning(t, channels=moved, connections=moved),
            "connections": (there,),
            "channels": (consuming,),
        }

    assert [] == found(look(film(frame, until=60)))


def test_channels_that_come_and_go_are_another_finding():
    """The connection stays."""
    assert "connection-churn" not in {rule for rule, _, _ in found(look(film(looping, until=60)))}


def test_refused_connections_are_no_churn():
    """They count as closed, never as created."""

    def frame(t):
        there, consuming = steady(t)
        overview = churning(t, churn={"connection_created": 5, "connection_closed": 5 + int(2 * t)})
        return {"overview": overview, "connections": (there,), "channels": (consuming,)}

    assert [] == found(look(film(frame, until=60)))
