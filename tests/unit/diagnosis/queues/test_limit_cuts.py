"""A length limit that is set while a queue holds more drops the rest at once; that is no purge."""

import pytest

from ackscope.findings import flat
from ackscope.topology import Policy
from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "maxlen-drop-head"


def cut(t, *, holds=900, limit=50, at=40.0, rate=0.4, name="nightly", takes=0.0, known=True, remains=None, **fields):
    """A backlog that a policy with a length limit cuts at second 40; `known`: readings show the policy only then."""
    published, taken = int(holds + rate * t), int(takes * t)
    before = published - taken
    left = limit if remains is None else remains
    policy = {"policy": "guard", "effective_policy": {"max-length": limit}} if t > at or not known else {}
    counters = stats(publish=published, **({"deliver": taken, "deliver_get": taken, "ack": taken} if taken else {}))
    ready = before if t <= at else left
    return queue(name, **{"consumers": 0, "messages_ready": ready, "stats": counters, **policy, **fields})


def shot(until=80, **fields):
    """The result for that queue after this many seconds."""
    return look(film(lambda t: frame(cut(t, **fields), queue("other", policy="guard")), until=until))


@pytest.mark.parametrize("known", [True, False], ids=["polls", "samples, which have the settings of now"])
@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize(
    ("holds", "limit", "rate", "name"), [(900, 50, 0.4, "夜"), (20_000, 19_000, 30.0, "a.b1"), (60, 1, 0.0, "q")]
)
def test_a_new_limit_that_cuts_a_queue_is_named(known, kind, holds, limit, rate, name):
    """With the policy, and with what it removed; nobody purged."""
    result = shot(holds=holds, limit=limit, rate=rate, name=name, type=kind, known=known)
    finding = one(RULE, result)

    assert "warning" == finding.severity
    assert holds - limit <= finding.facts["lost"] <= holds - limit + 45 * rate
    assert ("guard", ["other"]) == (finding.facts["cut"]["policy"], finding.facts["cut"]["others"])
    assert "'guard'" in text(finding).cause
    assert any("clear_policy" in (step.command or "") for step in text(finding).steps)
    assert not {"queue-purged", "unexplained-loss"} & {each.rule for each in flat(result.findings)}
    assert "on purpose" not in text(finding).summary


def test_a_cut_by_an_operator_policy_is_undone_by_its_operator():
    """It is another list of policies."""
    guard = Policy(vhost="/", name="ops", definition={"max-length": 50}, operator=True)
    fields = {"operator_policy": "ops", "policy": "work"}
    shown = text(
        one(RULE, look(film(lambda t: {**frame(cut(t, **fields, known=False)), "policies": (guard,)}, until=80)))
    )

    assert "Operator policy 'ops'" in shown.cause
    assert any("clear_operator_policy -p / ops" in (step.command or "") for step in shown.steps)


def test_what_a_queue_without_a_consumer_lost_by_it_is_no_consequence_of_that():
    """It would have kept all of it."""
    assert RULE in {each.rule for each in shot().findings}


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"remains": 0}, {"queue-purged"}),
        ({"limit": 5000, "remains": 0}, {"queue-purged"}),
        ({"limit": 5000, "remains": 900}, set()),
        ({"effective_policy": {"max-length": 50, "overflow": "reject-publish"}, "remains": 900}, set()),
    ],
    ids=["purged beside a lower limit", "purged below a limit", "limit is higher", "refuses"],
)
def test_what_only_resembles_it_is_no_cut(fields, rules):
    """Each differs in one thing."""
    result = shot(**fields)

    assert not any(each.facts["cut"] for each in flat(result.findings) if each.rule == RULE)
    assert rules == {"queue-purged"} & {each.rule for each in flat(result.findings)}


def test_dead_letters_of_a_cut_are_kept():
    """A dead-letter exchange gets what a new limit removes."""
    kept = {"max-length": 50, "dead-letter-exchange": "", "dead-letter-routing-key": "other"}
    result = look(film(lambda t: frame(cut(t, effective_policy=kept), queue("other")), until=80))

    assert [] == of(RULE, result)
    assert [] == of("queue-purged", result)


def test_consumers_that_work_a_backlog_off_down_to_the_limit_lose_nothing():
    """What is gone was delivered; the limit came later, or is just below what is left."""

    def at(t):
        taken = min(900, int(25 * t))
        counters = stats(publish=950, deliver=taken, deliver_get=taken, ack=taken)
        limited = {"effective_policy": {"max-length": 50}, "policy": "guard"}
        return frame(queue("work", messages_ready=950 - taken, consumers=2, stats=counters, **limited))

    assert [] == of(RULE, look(film(at, until=80)))


def old(published=1500, ready=400, **fields):
    """A full queue that nobody uses now."""
    made = {"consumers": 0, "arguments": {"x-max-length": 400}, "stats": stats(publish=published), **fields}
    return look(film(lambda _: frame(queue("import", messages_ready=ready, **made)), until=30))


@pytest.mark.parametrize("fields", [{}, {"type": "quorum"}, {"arguments": {}, "effective_policy": {"max-length": 400}}])
def test_a_loss_from_before_the_first_reading_is_information(fields):
    """Its own counters prove it: nothing was ever delivered."""
    finding = one(RULE, old(**fields))

    assert ("info", 1100, 1500, None) == (
        finding.severity,
        finding.facts["lost"],
        finding.facts["published"],
        finding.since,
    )
    assert "before the first reading" in text(finding).summary


@pytest.mark.parametrize(
    "fields",
    [
        {"published": 402},
        {"ready": 200},
        {"stats": stats(publish=1500, deliver=3, deliver_get=3, ack=3)},
        {"stats": stats(publish=1500, get_no_ack=3)},
        {"consumers": 1},
        {"arguments": {"x-max-length": 400, "x-overflow": "drop-head"}},
        {"arguments": {"x-max-length": 400, "x-overflow": "reject-publish"}},
        {"arguments": {"x-max-length": 400, "x-message-ttl": 1000}},
        {"arguments": {"x-max-length": 400, "x-dead-letter-exchange": "dlx"}},
        {"arguments": {"x-max-length": 1}, "ready": 1},
        {"arguments": {}},
    ],
    ids=[
        "two messages", "not full", "was consumed", "was polled", "has a consumer", "on purpose", "refuses", "expires",
        "dead-letters", "keeps the newest", "no limit",
    ],
)  # fmt: skip
def test_an_idle_queue_of_which_the_counters_prove_nothing_is_left_alone(fields):
    """Counters of clients that ended may be missing; other settings have other reasons."""
    assert [] == of(RULE, old(**fields))
