from dataclasses import replace

import pytest

from ackscope.findings import flat
from ackscope.topology import Limit, Policy, VHost
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.clients.loops import churning, loop, looping, reconnecting, turns
from tests.unit.diagnosis.pictures import PEER, connection, evidence, film, found, look, queue, stats, text

TEXT = len("PRECONDITION_FAILED - cannot declare queue '': queue limit in vhost 'rpc' (3) is reached")
CLIENT = 45
"""Bytes of a declare without name and arguments, with the channel around it."""
OTHER = "10.0.0.8:50002 -> 10.0.0.1:5672"


def limited(*, value=3, used=3, vhost="rpc", others=(), **fields):
    """A virtual host with a limit and some queues."""
    return {
        "limits": (Limit(scope="vhost", subject=vhost, name="max-queues", value=value), *others),
        "queues": tuple(queue(f"reply.{number}", vhost=vhost) for number in range(used)),
        **fields,
    }


def refused(t, *, name=11, extra=0, text_of=None, declares=1, vhost="rpc", **fields):
    """A client whose channel the broker closes at each declare, with a name of this many bytes."""
    length = TEXT + name if text_of is None else text_of
    shown = looping(t, rate=2.0, sent=35 + length, received=CLIENT + name + extra, declares=declares, vhost=vhost)
    return {**limited(), **shown, **fields}


def of_limit(verdict):
    """The finding of this rule; None without one."""
    return next((each for each in verdict.findings if each.rule == "queue-limit-reached"), None)


def named(verdict):
    """Clients that run into the limit."""
    return [each["client"] for each in of_limit(verdict).facts["clients"]]


@pytest.mark.parametrize(("name", "extra"), [(11, 0), (36, 44), (120, 0)], ids=["plain", "arguments", "long name"])
def test_a_client_that_is_refused_is_named_with_the_limit(name, extra):
    """One warning; its churn is a consequence."""
    verdict = look(film(lambda t: refused(t, name=name, extra=extra), until=30))

    assert [("queue-limit-reached", "warning", "rpc")] == found(verdict)
    finding = of_limit(verdict)
    assert ["channel-churn"] == [each.rule for each in finding.consequences]
    assert (3, 3, ["billing"], 30.0) == (
        finding.facts["used"], finding.facts["limit"], named(verdict), finding.facts["refused_seconds"],
    )  # fmt: skip
    assert ((PEER,), ("billing",)) == (finding.involved.connections, finding.involved.clients)
    assert "has 3 of 3 queues" in text(finding).summary


def test_a_name_that_the_broker_chooses_is_not_in_the_declare():
    """As for reply queues: the text has the name, the declare an empty one."""
    assert ["billing"] == named(look(film(lambda t: refused(t, name=30, extra=-30), until=30)))


def test_several_clients_are_one_finding():
    """With their own rates."""

    def frame(t):
        shown = refused(t)
        second = loop(
            t, rate=1.0, sent=35 + TEXT + 4, received=CLIENT + 4, name=OTHER, vhost="rpc", client_name="mailer"
        )
        done = turns(t, 2.0, 0) + turns(t, 1.0, 0)
        overview = churning(t, channels=done, declares=done, stats=stats(deliver_get=int(10 * t), ack=int(10 * t)))
        return {**shown, "connections": (*shown["connections"], second), "overview": overview}

    verdict = look(film(frame, until=30))

    assert [("queue-limit-reached", "warning", "rpc")] == found(verdict)
    assert ["billing", "mailer"] == named(verdict)
    assert 2 == len(of_limit(verdict).consequences)


def test_two_polls_are_enough():
    """Six seconds apart."""
    verdict = look(film(refused, until=12, every=6, start=6), thresholds=Thresholds.as_if_lasting())

    assert [("queue-limit-reached", "warning", "rpc")] == found(verdict)
    assert ["billing"] == named(verdict)


def declaring(t, *, listed=True, vhost="rpc", declares=1, **fields):
    """A client that reconnects and declares each time."""
    shown = reconnecting(t)
    done = turns(t, 1.0, 0)
    counters = fields.pop("stats", stats(deliver_get=int(10 * t), ack=int(10 * t)))
    lasting, brief = shown["connections"]
    overview = churning(t, channels=done, connections=done, declares=declares * done, stats=counters)
    there = (lasting, replace(brief, vhost=vhost)) if listed else (lasting,)
    return {**limited(), **shown, "overview": overview, "connections": there, **fields}


def test_a_client_that_closes_its_connection_at_the_error_is_named():
    """One declare in each cycle creates nothing, and nothing is published."""
    verdict = look(film(declaring, until=40))

    assert ("queue-limit-reached", "warning", "rpc") in found(verdict)
    assert ["connection-churn"] == [each.rule for each in of_limit(verdict).consequences]
    assert ["billing"] == named(verdict)


def test_connections_too_brief_to_be_listed_are_reported():
    """Nobody knows which client they are."""
    finding = of_limit(look(film(lambda t: declaring(t, listed=False), until=40)))

    assert (pytest.approx(1.0, rel=0.1), 0) == (finding.facts["unlisted_rate"], finding.facts["client_count"])
    assert ["connection-churn"] == [each.rule for each in finding.consequences]
    assert "too brief to be listed" in text(finding).summary


def test_slow_connections_that_are_not_listed_may_be_checks():
    """A check that connects, declares passively and disconnects does so every few seconds."""

    def frame(t):
        done = int(t / 6)
        return {**declaring(t, listed=False), "overview": churning(t, channels=done, connections=done, declares=done)}

    assert None is of_limit(look(film(frame, until=100))).facts["unlisted_rate"]


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: refused(t, declares=0),
        lambda t: refused(t, vhost="/"),
        lambda t: refused(t, text_of=60),
        lambda t: refused(t, text_of=TEXT + 40),
        lambda t: {**refused(t), **looping(t, rate=20.0, sent=28, received=203, vhost="rpc"), **limited()},
        lambda t: declaring(t, vhost="/"),
        lambda t: declaring(t, declares=0),
        lambda t: declaring(t, stats=stats(deliver_get=int(10 * t), ack=int(10 * t), publish=int(t))),
        lambda t: declaring(t, stats=stats(deliver_get=int(10 * t), ack=int(10 * t), get_empty=int(t))),
    ],
    ids=[
        "nothing is declared", "another vhost", "a shorter error", "a longer error", "it closes its channels itself",
        "reconnects elsewhere", "reconnects without a declare", "declares and publishes", "declares and gets nothing",
    ],
)  # fmt: skip
def test_a_client_whose_loop_does_not_fit_is_not_blamed(frame):
    """The limit itself is still reported."""
    verdict = look(film(frame, until=30))

    assert "warning" == of_limit(verdict).severity
    assert [] == named(verdict)
    assert [] == list(of_limit(verdict).consequences)


def test_a_declare_with_other_properties_stays_its_own_finding():
    """Its error is longer than a declare of this size could cause at the limit."""
    rules = {rule for rule, _, _ in found(look(film(lambda t: refused(t, text_of=TEXT + 40), until=30)))}

    assert {"queue-limit-reached", "declare-mismatch"} == rules


@pytest.mark.parametrize(
    ("value", "used", "severity"),
    [(10, 10, "warning"), (5, 12, "warning"), (20, 19, "info"), (20, 12, None), (-1, 12, None)],
    ids=["used up", "set below the use", "near", "far", "no limit"],
)
def test_the_use_decides(value, used, severity):
    """Nobody has to be refused."""
    finding = of_limit(look(film(lambda _: limited(value=value, used=used), until=20)))

    assert severity == (finding.severity if finding else None)


def test_a_vhost_that_grows_towards_its_limit_is_a_warning():
    """Two queues a minute, and two are left."""
    finding = of_limit(look(film(lambda t: limited(value=20, used=14 + int(t / 30)), until=120)))

    assert ("warning", pytest.approx(60.0, rel=0.3)) == (finding.severity, finding.facts["until_full_seconds"])


def test_a_vhost_that_was_filled_in_one_burst_is_only_near_its_limit():
    """A deployment declares its queues at once."""
    finding = of_limit(look(film(lambda t: limited(value=20, used=18 if t > 10 else 2), until=100)))

    assert ("info", None) == (finding.severity, finding.facts["until_full_seconds"])


def test_a_limit_of_zero_is_closed_on_purpose_until_a_client_runs_into_it():
    """Nobody declares anything."""
    verdict = look(film(lambda _: limited(value=0, used=0), until=20))

    assert [] == found(verdict)
    assert [("queue-limit-reached", "closed_on_purpose")] == [(each.rule, each.reason) for each in verdict.suppressed]
    # The length of the number is the same.
    verdict = look(
        film(
            lambda t: {**refused(t), **limited(value=0, used=0)},
            until=30,
        )
    )
    assert ["billing"] == named(verdict)


def test_queues_that_the_user_does_not_see_are_unknown():
    """The API lists the virtual host and its limit, but none of its queues."""
    hidden = look(film(lambda _: limited(used=0, hidden_queues=3, vhosts=(VHost(name="rpc"),)), until=20))

    assert None is of_limit(hidden)
    assert ("queue-limit-reached", "queues_hidden") in [(each.rule, each.reason) for each in hidden.inconclusive]
    assert of_limit(look(film(lambda _: limited(hidden_queues=3), until=20)))


def test_other_limits_of_the_vhost_stay_when_it_is_raised():
    """The command sets all of them."""
    other = Limit(scope="vhost", subject="rpc", name="max-connections", value=50)
    finding = of_limit(look(film(lambda _: limited(others=(other,)), until=20)))

    command = 'rabbitmqctl set_vhost_limits -p rpc \'{"max-connections": 50, "max-queues": 13}\''
    assert command in [step.command for step in text(finding).steps]
    assert 3 == evidence(finding, "used").value


def test_a_burst_of_declarations_is_no_loop():
    """The connection is quiet since then; another one loops."""

    def frame(t):
        shown = refused(t)
        quiet = connection(
            OTHER, client_name="setup", vhost="rpc", send_cnt=3 + (26 if t >= 5 else 0), channels=1,
            send_oct=549 + (1250 if t >= 5 else 0), recv_oct=405 + (1800 if t >= 5 else 0),
        )  # fmt: skip
        return {**shown, "connections": (*shown["connections"], quiet)}

    subjects = {each.subject.name for each in flat(look(film(frame, until=30)).findings)}

    assert {"rpc", PEER} == subjects


def test_a_policy_changes_nothing():
    """Limits are no policies."""
    policy = Policy(vhost="rpc", name="few", pattern=".*", definition={"max-length": 3})

    assert None is of_limit(look(film(lambda _: limited(value=50, policies=(policy,)), until=20)))
