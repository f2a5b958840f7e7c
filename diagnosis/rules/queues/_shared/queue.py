"""A queue as the subject of a finding, its facts, and the relation of a queue to its dead-letter targets."""

from collections.abc import Hashable, Iterable
from itertools import islice

from ackscope.findings import Certainty, Fact, Finding, Involved, QueueRef, Severity, Subject
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, Relation, View
from diagnosis.facts import client_name, queue_facts, queue_ref
from diagnosis.relations import INVOLVED_QUEUES
from diagnosis.routes import dead_letters_to

MAX_NAMED = 50
"""Maximum objects of one kind that a finding names, because a fault may concern thousands of queues."""
NAMED_BY_BROKER = "amq.gen-"
"""Prefix of the queues that a client declares without a name; nobody can declare such a name again."""


def queue_subject(queue: Queue) -> Subject:
    """Return the queue as the subject of a finding."""
    return Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.leader or queue.node)


def queue_with_policy(view: View, queue: Queue) -> dict[str, Fact]:
    """Return facts of a queue and its policies, for the macro `queues_set_policy`, which extends one of them.

    Of limits, the lower one of both policies is in force, so a higher one must be set where the lower one is.
    Source: https://www.rabbitmq.com/docs/policies#operator-policies

    Returns:
        `{"vhost", "name", "type", "node", "policy", "policy_definition", "operator_policy", "operator_definition"}`;
        `operator_definition` has what is in force by the operator policy, `policy_definition` everything else.
    """
    operator = operator_settings(view, queue)
    return {
        **queue_facts(queue),
        "policy_definition": {key: value for key, value in queue.effective_policy.items() if key not in operator},
        "operator_policy": queue.operator_policy,
        "operator_definition": operator,
    }


def operator_settings(view: View, queue: Queue) -> dict[str, Fact]:
    """Return what is in force by the operator policy of a queue; {} without one, or if policies are unknown."""
    if not queue.operator_policy:
        return {}
    defined = (each for each in view.policies if each.operator and each.vhost == queue.vhost)
    found = next((each.definition for each in defined if each.name == queue.operator_policy), {})
    return {key: value for key, value in found.items() if queue.effective_policy.get(key) == value}


def queue_refs(queues: Iterable[Queue]) -> tuple[QueueRef, ...]:
    """Return the references of at most `MAX_NAMED` queues."""
    return tuple(queue_ref(queue) for queue in islice(queues, MAX_NAMED))


def involved_queue(queue: Queue, links: Iterable[ConsumerPath] = (), others: Iterable[QueueRef] = ()) -> Involved:
    """Return a queue, its node and some of its consumers as what a finding involves."""
    links = tuple(links)
    channels = dict.fromkeys(link.consumer.channel_name for link in links if link.consumer.channel_name)
    connections = dict.fromkeys(link.consumer.connection_name for link in links if link.consumer.connection_name)
    clients = dict.fromkeys(name for link in links if (name := client_name(link.connection)))
    node = queue.leader or queue.node
    return Involved(
        queues=(queue_ref(queue), *others),
        channels=tuple(channels),
        connections=tuple(connections),
        clients=tuple(clients),
        nodes=(node,) if node else (),
    )


def certainty(severity: Severity, seconds: float, limit: float, known: Certainty = Certainty.LIKELY) -> Certainty:
    """Return EARLY for information that was seen for less than the limit, else `known`."""
    return Certainty.EARLY if severity is Severity.INFO and seconds < limit else known


def is_private(queue: Queue) -> bool:
    """Return whether a queue belongs to one client and is deleted with it, such as for replies."""
    return queue.exclusive is True or queue.auto_delete is True or queue.name.startswith(NAMED_BY_BROKER)


def is_lasting(queue: Queue) -> bool:
    """Return whether a queue was made to last, so that somebody misses its messages."""
    return queue.durable is True and not is_private(queue)


def _dead_letter_targets_of(view: View, finding: Finding) -> Iterable[Hashable]:
    source = view.queue(finding.subject.vhost, finding.subject.name)
    return () if source is None else (dead_letters_to(view, source) or ())


DEAD_LETTERS_INTO = Relation(_dead_letter_targets_of, INVOLVED_QUEUES.of_other)
"""The cause is a queue; the consequence is about a queue that its dead letters go to."""
