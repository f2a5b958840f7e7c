"""Links whose login is refused: what the finding says, and what hangs under it."""

from dataclasses import replace

import pytest

from ackscope.findings import QueueRef
from ackscope.snapshot import Overview
from ackscope.topology import AuthAttempts, Link
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.cluster.scenes import ONE, finding_of, reported
from tests.unit.diagnosis.pictures import film, look, queue, stats, text

RULE = "link-down"
AUTH = (
    '{auth_failure,"ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the log."}'
)
INTERNAL = {"x-internal-purpose": "federation"}


def federation(state="error", reason=AUTH, **fields):
    """A link of an exchange, in vhost `store`, to an upstream in vhost `hub` of the same cluster."""
    defaults = {"upstream": "hq", "vhost": "store", "local": "orders", "source_exchange": "sales", "node": ONE}
    settings = {"source": "amqp://10.0.0.1:5672/hub", "type": "exchange", **defaults, **fields}
    return Link(kind="federation", name="hq", state=state, reason=reason if state == "error" else None, **settings)


def backlog(t, name="federation: sales -> shop:store:orders", *, began=0.0, vhost="hub", **fields):
    """The queue at the upstream, which grows since the link fails."""
    waits = int(5 * max(0.0, t - began))
    counters = stats(publish=100 + int(5 * t), deliver=100 + int(5 * t) - waits, ack=100 + int(5 * t) - waits)
    defaults = {"consumers": 0 if t > began else 1, "messages_ready": waits, "messages": waits, "arguments": INTERNAL}
    return queue(name, vhost=vhost, stats=counters, **{**defaults, **fields})


def logins(t, *, every=5.0, began=0.0, node=ONE, protocol="amqp091"):
    """Refused logins, one in this many seconds, since some moment."""
    failed = int(max(0.0, t - began) / every)
    return AuthAttempts(node=node, protocol=protocol, total=50 + failed, succeeded=50, failed=failed)


def scene(t, link=None, *, began=-1.0, every=5.0, cluster="shop", **fields):
    """A federation link that is refused since a moment, the queue that it reads and the logins of the node."""
    there = federation("running") if t <= began else link or federation()
    return {
        "overview": Overview(rabbitmq_version="4.3.6", cluster_name=cluster, statistics=True, rates_mode="basic"),
        "links": (there,),
        "queues": (backlog(t, began=began, **fields),),
        "auth": (logins(t, every=every, began=max(0.0, began)),),
    }


def test_a_refused_login_is_a_warning_at_once_if_messages_wait_for_the_link():
    """A wrong password does not correct itself, and one look says the same."""
    for until, thresholds in ((10, Thresholds()), (5, Thresholds.brief())):
        verdict = look(film(scene, until=until), thresholds=thresholds)
        finding = finding_of(verdict, RULE)

        assert [("warning", "link", "hq")] == reported(verdict, RULE)
        assert ("said", 5 * (until + 1)) == (finding.facts["login"], finding.facts["waiting"])
        assert (QueueRef("hub", "federation: sales -> shop:store:orders"),) == finding.involved.queues
        assert "2027-01-15T08:00:00Z" == finding.since


def test_a_refused_login_without_a_backlog_is_given_time():
    """Its upstream is another broker; nothing is known to wait."""
    for until, severity in ((30, "info"), (60, "warning")):
        verdict = look(film(lambda _: {"links": (federation(),)}, until=until))

        assert [(severity, "link", "hq")] == reported(verdict, RULE)


@pytest.mark.parametrize(
    ("link", "command"),
    [
        (federation(), "set_parameter -p store federation-upstream hq"),
        (
            Link(
                kind="shovel", name="mover", vhost="/", state="terminated", reason="{error,sasl_auth_failure}", node=ONE
            ),
            "set_parameter -p / shovel mover",
        ),
    ],
    ids=["federation", "shovel"],
)
def test_the_first_step_sets_a_new_uri(link, command):
    """It is not about permissions."""
    words = text(finding_of(look(film(lambda _: {"links": (link,)}, until=30)), RULE))

    assert "The user or the password in " in words.steps[0].text
    assert command in (words.steps[0].command or "")
    assert "the user or the password" in words.cause
    assert not any("list_permissions" in (step.command or "") for step in words.steps)


def test_a_static_shovel_has_its_uri_in_a_file():
    """It has no parameter."""
    link = Link(kind="shovel", name="mover", type="static", state="terminated", reason=AUTH, node=ONE)
    first = text(finding_of(look(film(lambda _: {"links": (link,)}, until=30)), RULE)).steps[0]

    assert "advanced.config" in first.text
    assert not first.command


def test_a_missing_permission_is_no_refused_login():
    """The text has the same first word."""
    reason = "ACCESS_REFUSED - access to exchange 'sales' in vhost 'hub' refused for user 'fed'"
    finding = finding_of(look(film(lambda t: scene(t, federation(reason=reason)), until=30)), RULE)

    assert (None, "info") == (finding.facts["login"], finding.severity)
    assert any("list_permissions" in (step.command or "") for step in text(finding).steps)


def test_a_link_that_is_just_trying_again_keeps_its_reason():
    """For a moment it is "starting", and gives none."""

    def frame(t):
        return scene(t, federation("starting") if t == 30 else None)

    assert "said" == finding_of(look(film(frame, until=30)), RULE).facts["login"]


@pytest.mark.parametrize(
    ("link", "name", "vhost"),
    [
        (federation(), "federation: sales -> shop:store:orders", "hub"),
        (federation(local="sales", vhost="hub"), "federation: sales -> shop", "hub"),
        (federation(vhost="hub"), "federation: sales -> shop:orders", "hub"),
        (federation(source="amqp://", vhost="hub"), "federation: sales -> shop:orders", "hub"),
        (federation(local="sales"), "federation: sales -> shop:store:sales", "hub"),
    ],
    ids=["other vhost and name", "same", "same vhost", "no vhost in the address", "same name"],
)
def test_the_backlog_at_the_upstream_is_a_consequence(link, name, vhost):
    """The name of the queue is made of exchange, cluster, vhost and exchange of the downstream."""
    verdict = look(film(lambda t: scene(t, link, name=name, vhost=vhost), until=30))

    assert {"no-consumer", "auth-failures"} == {each.rule for each in finding_of(verdict, RULE).consequences}


@pytest.mark.parametrize(
    ("fields", "cluster"),
    [
        ({"name": "federation: sales -> depot:store:orders"}, "shop"),
        ({"name": "federation: audit -> shop:store:orders"}, "shop"),
        ({"vhost": "other"}, "shop"),
        ({}, "depot"),
    ],
    ids=["other downstream", "other exchange", "other vhost", "other cluster"],
)
def test_another_links_backlog_is_no_consequence(fields, cluster):
    """And nothing shows that the refused logins of this cluster are of this link."""
    verdict = look(film(lambda t: scene(t, cluster=cluster, **fields), until=30))

    assert () == finding_of(verdict, RULE).consequences
    assert 0 == finding_of(verdict, RULE).facts["waiting"]


def test_a_federated_queue_waits_in_the_vhost_of_its_upstream():
    """Not in the one of the link, where a queue has the same name."""
    link = federation(source_exchange=None, source_queue="jobs", local="jobs", type="queue")

    def frame(t):
        local = queue("jobs", vhost="store", consumers=0, messages_ready=7)
        return {**scene(t, link), "queues": (backlog(t, "jobs", arguments={}), local)}

    finding = finding_of(look(film(frame, until=30)), RULE)

    assert (QueueRef("hub", "jobs"),) == finding.involved.queues
    assert ("warning", 150) == (finding.severity, finding.facts["waiting"])
    assert {"no-consumer", "auth-failures"} == {each.rule for each in finding.consequences}


@pytest.mark.parametrize("every", [1.0, 2.5, 9.0])
def test_refused_logins_at_another_pace_are_another_clients(every):
    """They stay a finding of their own."""
    verdict = look(film(lambda t: scene(t, every=every), until=60))

    assert ["no-consumer"] == [each.rule for each in finding_of(verdict, RULE).consequences]
    assert "auth-failures" in [each.rule for each in verdict.findings]


def test_two_links_try_twice_as_often():
    """Each of them logs in."""

    def frame(t):
        links = (federation(), federation(local="audit", source_exchange="audit"))
        return {**scene(t, every=2.5), "links": links}

    verdict = look(film(frame, until=60))

    assert "auth-failures" in [each.rule for each in finding_of(verdict, RULE).consequences]


def shovel(t, *, fails, refused, reason=None, every=5.0):
    """A shovel that fails from one moment on, and logins that are refused from one moment on."""
    runs = Link(kind="shovel", name="mover", vhost="/", state="running", source_queue="jobs", node=ONE)
    state = "starting" if reason is None else "terminated"
    ended = Link(kind="shovel", name="mover", vhost="/", state=state, reason=reason, node=ONE)
    there = backlog(t, "jobs", began=fails, vhost="/", arguments={})
    auth = (logins(t, every=every, began=refused),)
    return {"links": (runs if t <= fails else ended,), "queues": (there,), "auth": auth}


@pytest.mark.parametrize("reason", [None, '"failed to connect to source"', "needed a restart"])
def test_the_login_of_a_shovel_is_told_by_the_counts(reason):
    """3.10.8 gives no reason, 4.3.6 says that it failed to connect."""
    verdict = look(film(lambda t: shovel(t, fails=20, refused=20, reason=reason), until=90))
    finding = finding_of(verdict, RULE)

    assert ("counted", "warning") == (finding.facts["login"], finding.severity)
    assert "probably refused" in text(finding).cause
    assert {"no-consumer", "auth-failures"} == {each.rule for each in finding.consequences}


@pytest.mark.parametrize(
    "fields",
    [
        {"fails": 60, "refused": 20},
        {"fails": 20, "refused": 60},
        {"fails": -1, "refused": 0},
        {"fails": 20, "refused": 20, "every": 2.0},
        {"fails": 20, "refused": 20, "reason": "econnrefused"},
    ],
    ids=["refused before", "refused later", "no beginning seen", "another pace", "another reason"],
)
def test_refused_logins_that_do_not_fit_a_shovel_tell_nothing(fields):
    """They are of another client."""
    verdict = look(film(lambda t: shovel(t, **fields), until=110))
    finding = finding_of(verdict, RULE)

    assert finding.facts["login"] is None
    assert "auth-failures" in [each.rule for each in verdict.findings]


@pytest.mark.parametrize("arguments", [INTERNAL, {}], ids=["the plugin's", "an application's"])
def test_no_application_is_asked_to_consume_from_the_queue_of_a_link(arguments):
    """At the upstream cluster, the link itself is not listed."""
    name = "federation: sales -> depot"

    def frame(t):
        return {"queues": (backlog(t, name, vhost="/", arguments=arguments),)}

    for until in (30, 200):
        finding = finding_of(look(film(frame, until=until)), "no-consumer")
        words = text(finding)
        steps = " ".join(f"{step.text} {step.command}" for step in words.steps)
        internal = bool(arguments)

        assert ("depot" if internal else None) == finding.facts["federated_to"]
        assert internal == ("federation link of 'depot'" in words.summary)
        assert internal == ("federation_status" in steps)
        assert internal == ("application that consumes" not in steps)
        assert "purge_queue" not in steps


@pytest.mark.parametrize(
    ("arguments", "severity"),
    [
        (INTERNAL | {"x-message-ttl": 6000}, "critical"),
        (INTERNAL | {"x-message-ttl": 3_600_000}, "warning"),
        (INTERNAL, "warning"),
    ],
    ids=["lost after 6 s", "not yet", "kept"],
)
def test_messages_that_expire_while_they_wait_for_the_link_are_its_loss(arguments, severity):
    """The upstream's definition limits their life. The expired messages are a consequence, not a second finding."""

    def frame(t):
        made = scene(t, began=20.0, arguments=arguments)
        (waiting,) = made["queues"]
        if arguments.get("x-message-ttl") == 6000:
            waiting = replace(
                waiting, messages_ready=min(30, waiting.messages_ready), messages=min(30, waiting.messages)
            )
        return {**made, "queues": (waiting,)}

    verdict = look(film(frame, until=110))
    finding = finding_of(verdict, RULE)

    assert severity == finding.severity
    assert (severity == "critical") == ("What has waited there for 6 s expires and is lost" in text(finding).summary)
    assert "ttl-expiry-loss" not in [each.rule for each in verdict.findings]
    assert (severity == "critical") == ("ttl-expiry-loss" in [each.rule for each in finding.consequences])


def test_the_upstream_alone_says_who_should_have_read_what_expires():
    """The link is of another cluster. No application consumes from this queue."""

    def frame(t):
        made = scene(t, began=20.0, arguments=INTERNAL | {"x-message-ttl": 6000}, cluster="other")
        (waiting,) = made["queues"]
        kept = replace(waiting, messages_ready=min(30, waiting.messages_ready), messages=min(30, waiting.messages))
        return {**made, "queues": (kept,), "links": ()}

    finding = finding_of(look(film(frame, until=110)), "ttl-expiry-loss")
    steps = " ".join(step.text for step in text(finding).steps)

    assert "federation link does not run" in steps
    assert "Start the application" not in steps
    assert "message-ttl in the definition of the upstream" in steps
