"""Messages that expire when they are returned, and rejected messages: the counters show them alike."""

from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest

from ackscope.findings import flat
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text

TTL, REJECT = "ttl-expiry-loss", "reject-loss"
SECONDS = 400


@dataclass
class Work:
    """A queue with a TTL and its only consumer, second by second.

    Attributes:
        lives, away: seconds for which the consumer is connected, and then is not.
        parting: whether it returns what it holds when it ends, or rejects it.
        rejects: each of so many messages is rejected; 0 for none.
        requeues: seconds after which it requeues all that it holds, again and again; 0 for never.
        late: seconds by which counters are older than lengths.
        arguments: those of the queue; the TTL is added if it is one of the queue, and not of each message.
    """

    name: str = "sms.out"
    comes: float = 8.5
    pace: float = 5.0
    prefetch: int = 150
    ttl: float = 10.0
    own: bool = False
    lives: int = 25
    away: int = 1
    parting: str = "return"
    rejects: int = 0
    requeues: int = 0
    late: int = 0
    arguments: dict[str, Any] = field(default_factory=dict)
    kind: str = "classic"

    @cached_property
    def seconds(self):
        """Lengths, counters, the number of the consumer and the messages that expired, of each second."""
        ready, held = deque(), deque()
        done, settled, expired, found = dict.fromkeys(("publish", "deliver", "ack", "redeliver"), 0), 0, 0, []
        for second in range(SECONDS):
            number, inside = divmod(second, self.lives + self.away)
            while done["publish"] < int(self.comes * second):
                ready.append((second, False))
                done["publish"] += 1
            ends = inside == self.lives
            if (ends and self.parting == "return") or (self.requeues and inside and inside % self.requeues == 0):
                ready.extendleft((born, True) for born, _ in reversed(held))
                held.clear()
            elif ends:
                held.clear()
            living = [each for each in ready if second - each[0] <= self.ttl]
            expired += len(ready) - len(living)
            ready = deque(living)
            if inside < self.lives:
                for _ in range(min(len(held), int(self.pace * (second + 1)) - int(self.pace * second))):
                    held.popleft()
                    settled += 1
                    done["ack"] += not (self.rejects and settled % self.rejects == 0)
                while ready and len(held) < self.prefetch:
                    held.append(ready.popleft())
                    done["deliver"] += 1
                    done["redeliver"] += held[-1][1]
            found.append((len(ready), len(held), dict(done), number if inside < self.lives else None, expired))
        return found

    def frame(self, t):
        """The parts of a snapshot."""
        ready, held, _, number, expired = self.seconds[int(t)]
        counters = stats(**self.seconds[max(0, int(t) - self.late)][2])
        settings = self.arguments | ({} if self.own else {"x-message-ttl": int(1000 * self.ttl)})
        lengths = {"messages_ready": ready, "messages_unacked": held}
        work = queue(
            self.name,
            consumers=int(number is not None),
            type=self.kind,
            stats=counters,
            arguments=settings,
            **lengths,
        )
        dead = queue("dead", messages_ready=expired, consumers=0)
        if number is None:
            return {"queues": (work, dead)}
        name = f"10.0.0.7:{50001 + number} -> 10.0.0.1:5672"
        began = WALL + number * (self.lives + self.away)
        paths = {"connection_name": name, "channel_name": f"{name} (1)"}
        return {
            "queues": (work, dead),
            "consumers": (consumer(self.name, tag=f"c{number}", prefetch_count=self.prefetch, **paths),),
            "channels": (channel(f"{name} (1)", messages_unacked=held),),
            "connections": (connection(name, client_name="sms-gw", connected_at=began),),
        }

    def losses(self, until=140):
        """The findings about lost messages of the queue, with what depends on them."""
        result = look(film(self.frame, until=until))
        return [each for each in flat(result.findings) if each.rule in {TTL, REJECT, "unexplained-loss"}]


def one(findings, rule):
    """The only finding, which is of this rule."""
    assert [rule] == [each.rule for each in findings]
    return findings[0]


WORKS = [
    {},
    {"kind": "quorum", "name": "mails", "comes": 8.0, "pace": 6.0, "prefetch": 120, "ttl": 8.0, "lives": 20},
    {"name": "a.b1", "comes": 24.0, "pace": 20.0, "prefetch": 700, "ttl": 4.0, "lives": 30},
    {"name": "orders", "comes": 3.0, "pace": 1.0, "prefetch": 100, "ttl": 5.0, "lives": 30, "away": 2},
]


@pytest.mark.parametrize("late", [0, 3, 5])
@pytest.mark.parametrize("of", WORKS, ids=[str(each.get("name", "sms.out")) for each in WORKS])
def test_what_a_consumer_held_for_longer_than_the_ttl_expires_when_it_ends(of, late):
    """Nobody rejects; names, rates and the delay of counters do not matter."""
    work = Work(**of, late=late)
    finding = one(work.losses(), TTL)
    facts = finding.facts["returned"]

    assert (True, 0) == (facts["ended"], finding.facts["lost"])
    assert ["sms-gw"] == facts["clients"]
    assert "A consumer that ends" in text(finding).cause
    assert "each restart loses" in " ".join(step.text for step in text(finding).steps)


def test_the_finding_says_what_was_lost_and_which_prefetch_is_enough():
    """Nothing was lost between the restarts, so it says nothing about rejects."""
    finding = one(Work().losses(), TTL)
    rendered = text(finding)

    assert "critical" == finding.severity
    assert finding.facts["returned"]["only"]
    assert "A consumer that ended returned them, and they were older than the TTL of 10 s" in rendered.summary
    assert "reject" not in rendered.summary + rendered.cause
    assert 20 <= finding.facts["returned"]["prefetch"] <= 25
    lost = Work().seconds[140][4]
    assert lost / 2 <= finding.facts["returned"]["lost"] <= 1.1 * lost


def test_restarts_are_shown_under_the_loss():
    """One cause is one finding."""
    result = look(film(Work(lives=8, away=1, pace=2.0, ttl=4.0).frame, until=140))

    assert [TTL] == [each.rule for each in result.findings if each.subject.name == "sms.out"]
    assert "consumer-flapping" in {each.rule for each in flat(result.findings)}


@pytest.mark.parametrize("lives", [1000, 45])
@pytest.mark.parametrize("rejects", [1, 4, 8])
@pytest.mark.parametrize(("ttl", "pace"), [(30.0, 12.0), (60.0, 50.0), (3600.0, 9.0)])
def test_what_is_rejected_while_a_consumer_stays_was_rejected(ttl, pace, rejects, lives):
    """The TTL of the queue does not matter, nor a restart now and then."""
    work = Work(ttl=ttl, pace=pace, comes=8.0, prefetch=20, rejects=rejects, lives=lives, name="faxes")

    assert "loses what its consumers reject" in text(one(work.losses(), REJECT)).summary


def test_young_messages_that_are_rejected_at_a_restart_did_not_expire():
    """They were in the queue for seconds; the TTL is an hour."""
    work = Work(ttl=3600.0, parting="reject", prefetch=30, comes=8.0, pace=4.0)

    assert not one(work.losses(), REJECT).facts["perhaps_expired"]


@pytest.mark.parametrize("pace", [3.0, 5.0])
def test_a_consumer_that_stays_may_requeue_what_is_too_old(pace):
    """It requeues all that it holds every thirty seconds. In a queue with a backlog, all of it is too old."""
    work = Work(ttl=6.0, comes=6.0, pace=pace, prefetch=90, lives=1000, requeues=30, name="scans")
    finding = one(work.losses(180), TTL)

    assert not finding.facts["returned"]["ended"]
    assert "A consumer that stays connected returns messages with requeue" in text(finding).cause


@pytest.mark.parametrize("rejects", [0, 3])
def test_where_messages_come_back_all_the_time_both_are_said(rejects):
    """Then nothing shows whether some are lost between returns."""
    work = Work(ttl=6.0, comes=6.0, pace=3.0, prefetch=90, lives=1000, requeues=4, rejects=rejects)
    findings = work.losses(180)
    if rejects:
        rendered = text(one(findings, TTL))
        assert "or rejected them" in rendered.summary
        assert "A client that rejects messages without requeue looks the same" in rendered.cause
    else:
        assert REJECT not in {each.rule for each in findings}


def test_messages_may_have_an_expiration_of_their_own():
    """No list shows it: it is said beside the reject, where all that is lost comes with returns."""
    finding = one(Work(own=True).losses(), REJECT)

    assert finding.facts["perhaps_expired"]
    assert "Consumers rejected them, or returned them after an expiration of their own" in text(finding).summary


def test_without_a_ttl_steady_rejects_are_rejects():
    """An expiration that is seconds long would need messages that wait for so long."""
    work = Work(own=True, ttl=3600.0, lives=1000, comes=8.0, pace=12.0, rejects=4, prefetch=20)

    assert not one(work.losses(), REJECT).facts["perhaps_expired"]


def test_with_a_dead_letter_exchange_nothing_is_lost():
    """The dead letters are said to have expired on their return."""
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    result = look(film(Work(arguments=dead).frame, until=390))
    findings = {each.rule: each for each in flat(result.findings)}

    assert not {TTL, REJECT} & findings.keys()
    assert ["returned"] == [each["reason"] for each in findings["dlq-filling"].facts["reasons"]]
    assert "when they came back to queue 'sms.out'" in text(findings["dlq-filling"]).cause


def test_messages_that_expire_before_and_after_delivery_are_one_finding():
    """Its consumer takes less than half of what arrives, and restarts."""
    finding = one(Work(comes=20.0, pace=4.0, prefetch=60, ttl=10.0, lives=30).losses(180), TTL)

    assert finding.facts["lost"] > finding.facts["returned"]["lost"] > 0
    assert "Another" in text(finding).cause
