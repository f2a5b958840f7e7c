from dataclasses import replace

import pytest

from ackscope.findings import flat
from tests.unit.diagnosis.clients.loops import churning, looping, reconnecting, steady, turns
from tests.unit.diagnosis.pictures import WALL, connection, film, found, look, only, queue, stats, text


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


def test_two_mqtt_clients_with_one_id_are_a_likely_cause():
    """Each connection ends the other one."""

    def frame(t):
        made = reconnecting(t)
        known = tuple(replace(each, client_id=each.client_name, protocol="MQTT 5-0") for each in made["connections"])
        return {**made, "connections": known}

    finding = only(look(film(frame, until=40)))

    assert ("billing", True) == (finding.facts["client"], finding.facts["mqtt"])
    assert "same client id" in text(finding).cause
    assert any("duplicate" in (step.command or "") for step in text(finding).steps)


def test_it_is_a_warning_after_five_minutes():
    """The limit is one connection per second."""
    fast = film(lambda t: reconnecting(t, every=0.8), until=330)

    assert [("connection-churn", "warning", "billing")] == found(look(fast))


@pytest.mark.parametrize(("opened", "severity", "named"), [(3, "warning", None), (16, "info", 1.6), (90, "info", 9.0)])
def test_the_rate_of_a_warning_is_that_for_the_open_connections(opened, severity, named):
    """A tenth of them a second; a finding that is information must not name a lower rate than its own."""

    def frame(t):
        made = reconnecting(t, every=0.8)
        return {**made, "overview": replace(made["overview"], connections=opened)}

    finding = only(look(film(frame, until=330)))

    assert severity == finding.severity
    if named:
        assert finding.facts["warning_rate"] == pytest.approx(named)
        assert f"a warning from {named:g}/s on" in text(finding).summary
        assert finding.facts["cycle_rate"] < finding.facts["warning_rate"]


def test_connections_that_are_never_listed_are_a_finding_about_the_cluster():
    """Only the log shows which client it is."""
    finding = only(look(film(unseen, until=40)))

    assert ("cluster", "shop", "info") == (finding.subject.kind, finding.subject.name, finding.severity)
    assert finding.facts["client"] is None
    assert "granted access to vhost" in text(finding).steps[0].command


@pytest.mark.parametrize(("number", "rate", "kinds"), [(2, 0.75, []), (5, 0.75, []), (2, 2.0, ["cluster"])])
def test_a_client_that_ends_once_is_not_named(number, rate, kinds):
    """It has several connections that end in order; the loop is that of a client that is never listed."""

    def frame(t):
        made = unseen(t, rate=rate)
        job = [
            connection(f"10.0.0.8:{51000 + each} -> 10.0.0.1:5672", client_name="nightly-sync", connected_at=WALL - 30)
            for each in range(number)
        ]
        return {**made, "connections": (*made["connections"], *(job if t < 45 else ()))}

    findings = look(film(frame, until=60)).findings

    assert kinds == [each.subject.kind for each in findings]
    assert not any(each.facts["client"] or each.involved.clients for each in findings)


@pytest.mark.parametrize(("rate", "kinds"), [(0.5, []), (2.0, ["cluster"])])
def test_clients_that_stay_for_half_a_minute_do_not_get_the_loop_of_another_one(rate, kinds):
    """Log viewers come and go; the loop is that of a client that is never listed."""

    def frame(t):
        made, viewers = unseen(t, rate=rate), []
        for number, stays in enumerate((22, 16, 21, 27)):
            turn = int((t + 7 * number) // stays)
            opened = WALL + turn * stays - 7 * number
            name = f"10.0.0.{number}:{51000 + turn} -> 10.0.0.1:5672"
            viewers.append(connection(name, client_name=f"log-tail-{number}", connected_at=opened))
        return {**made, "connections": (*made["connections"], *viewers)}

    assert kinds == [each.subject.kind for each in look(film(frame, until=100, every=20)).findings]


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


def starving(t, *, every=1.6, rate=4.0, consumers=0, vhost="/", brief=False, declares=0):
    """A queue grows, and the application that should consume from it reconnects and moves no message."""
    made = unseen(t, 1 / every) if brief else reconnecting(t, every=every, client="tiles")
    done = turns(t, 1 / every, 0)
    moved = stats(deliver_get=int(10 * t), ack=int(10 * t))
    growing = stats(publish=int(rate * t))
    return {
        **made,
        "overview": churning(t, channels=done, connections=done, declares=declares * done, stats=moved),
        "queues": (queue("render", vhost=vhost, consumers=consumers, messages_ready=int(rate * t), stats=growing),),
    }


@pytest.mark.parametrize(
    ("every", "until", "severity"),
    [
        (0.2, 25, "info"),
        (0.2, 40, "warning"),
        (1.6, 25, "info"),
        (1.6, 40, "warning"),
        (3.5, 30, "info"),
        (3.5, 65, "warning"),
    ],
)
@pytest.mark.parametrize("brief", [False, True])
def test_a_loop_that_moves_nothing_while_a_queue_grows_without_a_consumer_is_urgent_sooner(
    every, until, severity, brief
):
    """After ten connections, at any rate from one every 4 s on; the queue without its consumer is a consequence."""
    verdict = look(film(lambda t: starving(t, every=every, brief=brief), until=until))
    (finding,) = [each for each in verdict.findings if each.rule == "connection-churn"]

    assert (severity, ["render"]) == (finding.severity, finding.facts["starved"])
    assert "no-consumer" not in [each.rule for each in verdict.findings]


def test_an_unlisted_application_explains_no_queues_of_several_virtual_hosts():
    """It belongs to one of them, and nobody knows to which; each queue stays a finding of its own."""

    def frame(t):
        made = starving(t, brief=True)
        (render,) = made["queues"]
        return {**made, "queues": (render, replace(render, vhost="billing", name="bills"))}

    verdict = look(film(frame, until=80))
    (churn,) = [each for each in verdict.findings if each.rule == "connection-churn"]

    assert (("bills", "render"), ()) == (tuple(churn.facts["starved"]), churn.involved.queues)
    assert {"bills", "render"} == {each.subject.name for each in verdict.findings if each.rule == "no-consumer"}


@pytest.mark.parametrize(
    ("name", "idle"),
    [("freight", ("freight", "eu")), ("tickets", ("tickets", "b2b")), ("mail.out", ("mail_out", "/"))],
    ids=["namesake in vhost eu", "namesake in vhost b2b", "written otherwise"],
)
@pytest.mark.parametrize("listed", [False, True])
def test_an_unlisted_loop_explains_no_queue_whose_consumers_wait_elsewhere(name, idle, listed):
    """A client that is listed, in the virtual host of the queue and in vain, still explains it."""

    def frame(t):
        made = starving(t, brief=not listed)
        (render,) = made["queues"]
        there = queue(idle[0], vhost=idle[1], consumers=2, messages_ready=0, stats=stats())
        return {**made, "queues": (replace(render, name=name), there)}

    verdict = look(film(frame, until=80))
    starved = [each.facts["starved"] for each in flat(verdict.findings) if each.rule == "connection-churn"]

    assert ([[name]] if listed else []) == starved
    assert listed is ("no-consumer" not in [each.rule for each in verdict.findings])


def test_a_namesake_that_is_used_or_that_nobody_consumes_is_no_better_explanation():
    """Its consumers are where they should be, or there are none."""

    def frame(t, consumers, done):
        made = starving(t, brief=True)
        (render,) = made["queues"]
        counters = stats(publish=done, deliver=done, deliver_get=done, ack=done)
        return {**made, "queues": (render, queue("render", vhost="eu", consumers=consumers, stats=counters))}

    for consumers, done in ((1, 5), (0, 0)):
        verdict = look(film(lambda t, n=consumers, each=done: frame(t, n, int(each * t)), until=80))
        (finding,) = (each for each in flat(verdict.findings) if each.rule == "connection-churn")
        assert ["render"] == finding.facts["starved"]


def test_a_queue_whose_consumer_came_during_the_loop_is_not_that_of_the_loop():
    """It is restarted now and then, while a health check connects all the time."""

    def frame(t):
        made = starving(t, brief=True, rate=1.0)
        (render,) = made["queues"]
        return {**made, "queues": (replace(render, consumers=int(60 < t < 90)),)}

    assert [] == [each for each in look(film(frame, until=180)).findings if each.rule == "connection-churn"]


def dropped(t, *, every=2.5, lump=5, client="weigher"):
    """A client whose channel is closed with an error drops its connection without closing it: many end at once."""
    made = starving(t, every=every)
    done = turns(t, 1 / every, 0)
    ended = max(0, done // lump * lump - 1)
    there = [each for each in made["connections"] if each.client_name == "shop"]
    there += [
        connection(
            f"10.0.0.7:{50000 + number} -> 10.0.0.1:5672",
            client_name=client,
            user="scales",
            peer_host="10.0.0.7",
            channels=0,
            connected_at=WALL + number * every,
        )
        for number in range(ended, done)
    ]
    moved = made["overview"].stats
    overview = churning(t, channels=done, connections=done, stats=moved)
    overview = replace(overview, churn={**overview.churn, "connection_closed": 15 + ended})
    return {**made, "overview": overview, "connections": tuple(there)}


@pytest.mark.parametrize(("every", "lump"), [(2.5, 5), (2.0, 8), (0.5, 46)])
def test_connections_that_end_many_at_a_time_are_a_loop(every, lump):
    """They are opened steadily; those that stay for a while have no channel any more."""
    verdict = look(film(lambda t: dropped(t, every=every, lump=lump), until=60))
    (finding,) = [each for each in verdict.findings if each.rule == "connection-churn"]

    assert ("warning", "weigher") == (finding.severity, finding.facts["client"])
    assert "403 ACCESS_REFUSED" in text(finding).cause
    assert any("list_user_permissions scales" in (step.command or "") for step in text(finding).steps)


@pytest.mark.parametrize(("declares", "said"), [(1, "406"), (0, "crashes at its start")])
def test_declares_point_to_a_queue_with_other_properties(declares, said):
    """Without a declare it may be any error."""
    verdict = look(film(lambda t: starving(t, declares=declares), until=80))
    (finding,) = [each for each in verdict.findings if each.rule == "connection-churn"]

    assert said in text(finding).cause


@pytest.mark.parametrize(
    "fields",
    [{"consumers": 1}, {"rate": 0.0}, {"vhost": "other"}, {"every": 6.0}],
    ids=["consumed", "does not grow", "in another vhost", "slow"],
)
def test_a_loop_without_a_starving_queue_stays_information(fields):
    """A health check connects and does nothing else."""
    verdict = look(film(lambda t: starving(t, **fields), until=80))

    assert ["info"] == [each.severity for each in verdict.findings if each.rule == "connection-churn"]


def test_a_link_that_reconnects_is_no_application_that_should_consume():
    """The queue without a consumer has another cause."""

    def frame(t):
        made = starving(t)
        return {**made, "connections": tuple(replace(each, client_name="Shovel x") for each in made["connections"])}

    (finding,) = [each for each in look(film(frame, until=80)).findings if each.rule == "connection-churn"]

    assert ("info", []) == (finding.severity, finding.facts["starved"])
