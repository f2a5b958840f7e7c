"""What findings about queues say alike."""

import json
import re
from collections.abc import Hashable, Iterable
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import FindingReport
from ackscope.snapshot import Queue
from diagnosis.contract import Relation, View
from diagnosis.routes import dead_letters_to
from diagnosis.words import lasting


def about(queue: Queue) -> Subject:
    """The queue as the subject of a finding."""
    return Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.leader or queue.node)


def named(queue: Queue) -> str:
    """The queue in a sentence."""
    return f"queue {queue.name!r} ({queue.vhost!r})"


def so_far(severity: Severity, seconds: float, later: float, like: str) -> str:
    """How long it was seen, and what an early finding adds.

    Args:
        severity: of the finding.
        seconds: how long it was seen.
        later: after how long it is more than information.
        like: what harmless thing looks the same.
    """
    told = f"seen for {lasting(seconds)}"
    if severity is not Severity.INFO or seconds >= later:
        return told
    return f"{told}; {like} looks the same, more after {lasting(later)}"


def set_policy(queue: Queue, name: str, definition: dict[str, object]) -> str:
    """The command that sets a policy for one queue alone."""
    pattern = quote(f"^{re.escape(queue.name)}$")
    command = f"rabbitmqctl set_policy -p {quote(queue.vhost)} {name} {pattern} {quote(json.dumps(definition))}"
    merge = f" (it replaces policy {queue.policy!r}: merge the two)" if queue.policy else ""
    return f"{command} --apply-to queues --priority 10{merge}"


def is_private(queue: Queue) -> bool:
    """Whether a queue belongs to one client and dies with it: an answer queue, a subscription of a moment."""
    return queue.exclusive is True or queue.auto_delete is True or queue.name.startswith("amq.gen")


def _dead_letters_of(view: View, finding: FindingReport) -> Iterable[Hashable]:
    """Where the queue that is the subject dead-letters to."""
    source = view.queue(finding.subject.vhost, finding.subject.name)
    return () if source is None else (dead_letters_to(view, source) or ())


def _place(_view: View, finding: FindingReport) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


DEAD_LETTERS_INTO = Relation(_dead_letters_of, _place)
"""The cause is a queue, and what follows is about the queue that its dead letters go to."""
