from tests.unit.diagnosis.probing.heard import heard, of, one, outcome, step

RULE = "probe-name-unresolved"
UNKNOWN = "shop:5672: host name 'shop' is not known"


def shaken(node="", **steps):
    """Return a handshake outcome with these steps."""
    return outcome("handshake", queue="", node=node, steps={"dns": step(), "tcp": step(), **steps}, success=not steps)


def test_a_name_that_is_not_found_is_a_warning_when_it_stays():
    """A single failure is information."""
    assert [("info", "handshake")] == of(RULE, heard(shaken(dns=step(failures=1, reason=UNKNOWN))))
    assert [("warning", "handshake")] == of(RULE, heard(shaken(dns=step(failures=2, reason=UNKNOWN))))


def test_nodes_that_answer_by_their_own_address_are_named():
    """This shows that the name is broken, and not the broker."""
    verdict = heard(shaken(dns=step(failures=2, reason=UNKNOWN)), shaken("rabbit@one"))

    assert ["rabbit@one"] == one(RULE, verdict).facts["reached_nodes"]


def test_a_load_balancer_that_does_not_answer_is_recognised_by_the_nodes_that_do():
    """Without them it may be the broker."""
    refused = shaken(tcp=step(failures=3, reason="connection refused"))

    assert [] == of(RULE, heard(refused))
    assert "tcp" == one(RULE, heard(refused, shaken("rabbit@one"))).facts["step"]


def test_a_node_that_does_not_answer_is_another_matter():
    """Its own address is not that of the clients."""
    refused = shaken("rabbit@two", tcp=step(failures=3, reason="connection refused"))

    assert [] == of(RULE, heard(shaken(), refused, shaken("rabbit@one")))


def test_a_name_that_is_found_again_is_left_alone():
    """Past failures stay in the counter, but only the latest attempt matters."""
    assert [] == of(RULE, heard(shaken(dns=step(failures=5))))
