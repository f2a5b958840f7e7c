"""What AMQP 1.0 publishers do on a broker that tells no links (4.0), by the totals of all of them."""

from ackscope.second_source import MetricsReading, NativeTotals
from tests.unit.diagnosis.pictures import WALL, connection, film, full_text, look, queue
from tests.unit.diagnosis.publishers.films import findings

ONE, TWO = "10.0.0.7:50001 -> 10.0.0.1:5672", "10.0.0.8:50001 -> 10.0.0.1:5672"


def frame(t, *, received=10.0, awaited=10.0, unroutable=0.0, vhosts=("/",), **parts):
    """Some clients that publish; the rates are messages a second."""
    native = NativeTotals(
        received=int(100 + received * t), awaited=int(100 + awaited * t), unroutable=int(unroutable * t)
    )
    own = {"protocol": "AMQP 1-0", "client_name": None, "channels": None, "user": "app", "connected_at": WALL}
    return {
        "version": "4.0.5",
        "queues": (queue(),),
        "connections": tuple(
            connection(name, **own, vhost=vhost) for name, vhost in zip((ONE, TWO), vhosts, strict=False)
        ),
        "prometheus": MetricsReading(nodes=("rabbit@one",), native=native),
        **parts,
    }


def reasons(verdict, rule):
    """The reasons for which a rule is inconclusive."""
    return [each.reason for each in verdict.inconclusive if each.rule == rule]


def test_messages_without_an_outcome_are_reported_for_the_virtual_host_of_all_clients():
    """Of ten a second the publisher waits for four."""
    verdict = look(film(lambda t: frame(t, awaited=4.0), until=60))
    (finding,) = findings(verdict, "pub-no-confirms")

    assert ("info", "/", (ONE,)) == (finding.severity.value, finding.subject.name, finding.involved.connections)
    assert "6/s without waiting for an outcome" in full_text(finding)
    assert [] == reasons(verdict, "pub-no-confirms")


def test_publishers_that_wait_for_outcomes_are_not_accused():
    """That is known, so there is nothing to leave open."""
    verdict = look(film(frame, until=60))

    assert [] == findings(verdict, "pub-no-confirms")
    assert [] == reasons(verdict, "pub-no-confirms")


def test_clients_of_several_virtual_hosts_leave_it_open():
    """It is not known in which of them it was published."""
    verdict = look(film(lambda t: frame(t, awaited=4.0, unroutable=1.0, vhosts=("/", "/else")), until=60))

    for rule in ("pub-no-confirms", "pub-unroutable-returned"):
        assert [] == findings(verdict, rule)
        assert ["links_not_reported"] == reasons(verdict, rule)


def test_released_messages_are_reported_without_their_exchange():
    """The total names none, so the rule also says what is missing."""
    verdict = look(film(lambda t: frame(t, unroutable=2.0, vhosts=("/", "/")), until=120))
    (finding,) = findings(verdict, "pub-unroutable-returned")

    assert ("vhost", "/", (ONE, TWO)) == (finding.subject.kind, finding.subject.name, finding.involved.one_of)
    assert "One or more of 2" in full_text(finding)
    assert ["links_not_reported"] == reasons(verdict, "pub-unroutable-returned")


def test_what_a_client_did_that_is_gone_is_not_reported():
    """It settled what it sent, until it went in second 30."""

    def leaves(t):
        made = frame(t, awaited=10.0, vhosts=("/", "/"))
        lost = NativeTotals(received=int(100 + 10 * t) + int(6 * min(t, 30)), awaited=int(100 + 10 * t), unroutable=0)
        made["prometheus"] = MetricsReading(nodes=("rabbit@one",), native=lost)
        return made if t <= 30 else {**made, "connections": made["connections"][:1]}

    assert [] == findings(look(film(leaves, until=80)), "pub-no-confirms")


def test_a_full_queue_lists_the_clients_that_may_publish_to_it():
    """None of them is accused: a publisher of another protocol may be the one."""
    limit = {"x-max-length": 10, "x-overflow": "reject-publish"}
    own = queue("bills", type="quorum", messages_ready=11, consumers=0, arguments=limit)
    verdict = look(film(lambda t: frame(t, queues=(own,)), until=60))
    (finding,) = findings(verdict, "pub-nacked-overflow")

    assert ("info", (), (ONE,)) == (
        finding.severity.value,
        finding.involved.connections,
        finding.involved.one_of,
    )
    assert "10.0.0.7:50001" in full_text(finding)
