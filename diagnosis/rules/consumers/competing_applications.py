"""competing-applications: two different applications consume from one queue, so each gets only a part of its messages.

A queue gives each message to one consumer. Instances of one application share the work that way; two applications each
miss what the other one took, and no counter shows a loss. Applications differ if their user or their client library
does, so one of them may be a shovel, a test on a laptop, or the old version of a service. Streams are read by all, and
a single active consumer is only replaced by the others.

A client that polls with automatic acknowledgement beside the consumers takes messages from them for good, however few:
a check that reads a message each minute loses one each minute. A queue that is only polled is that client's own. One
that polls with manual acknowledgement and gives nothing back takes messages as well. It may share the work, so that is
information.
Source: https://www.rabbitmq.com/docs/queues#consumers
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Connection, Queue
from ackscope.topology import Link
from diagnosis.contract import ConsumerPath, Relation, RuleResult, View
from diagnosis.facts import client_name
from diagnosis.relations import INVOLVED_QUEUES
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.cluster._shared.link_flow import is_here, link_sources, link_targets
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.rules.consumers._shared.pollers import (
    AUTOMATIC,
    PolledBeside,
    polled_beside,
    polls_since_opened,
    same_application,
)
from diagnosis.series import count, span

NAME = "competing-applications"

_LEAST_SHARE, _LEAST = 0.05, 20
"""An application takes part from this share of the deliveries on, and from so many messages on."""
_LASTING, _LASTING_SECONDS = 3, 20.0
"""Times that a queue must have been polled, and for how long: a person who looks at it does so once."""
_REPORTED_FOR = 300.0
"""Seconds for which a poll is reported."""

_TAKES_FOR = 60.0
"""Seconds after which an application that takes messages for good beside others is a warning."""

_Application = tuple[str, str]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each queue that two applications read; what is polled for good comes first."""
    for queue in view.queues:
        found = polled_beside(view, queue)
        if found is not None and view.now.since(found.latest) <= _REPORTED_FOR:
            same = _by_consumers_themselves(view, queue, found)
            if not same:
                yield _polled_finding(view, queue, found, known=same is not None)
                continue
        if (queue.consumers or 0) < 2 or queue.type == "stream" or queue.setting("single-active-consumer"):
            continue
        groups = _applications(view, queue)
        if len(groups) < 2:
            continue
        delivered = {who: sum(_delivered(path) for path in paths) for who, paths in groups.items()}
        total = sum(delivered.values())
        if min(delivered.values()) >= max(_LEAST, _LEAST_SHARE * total):
            yield _finding(view, queue, groups, delivered)


def _applications(view: View, queue: Queue) -> dict[_Application, list[ConsumerPath]]:
    """Return the consumers of a queue by user and client library; nothing if they are not known of each."""
    found: dict[_Application, list[ConsumerPath]] = defaultdict(list)
    for path in view.links(queue):
        connection, channel = path.connection, path.channel
        if connection is None or connection.user is None or connection.client_product is None:
            return {}
        # What a channel delivered belongs to a queue only if it serves no other.
        if channel is None or view.queues_served(channel.name) != 1:
            return {}
        found[connection.user, connection.client_product].append(path)
    return found


def _automatic_paths(groups: dict[_Application, list[ConsumerPath]]) -> list[ConsumerPath]:
    """Return the consumers of applications that acknowledge automatically, while those of others do after their work.

    Two codes take from one queue then, and not two instances of one. None if a shovel is among them.
    """
    modes = {who: {bool(path.consumer.ack_required) for path in paths} for who, paths in groups.items()}
    if {False} not in modes.values() or {True} not in modes.values():
        return []
    return [path for who, paths in groups.items() if modes[who] == {False} for path in paths]


def _shovels(view: View, place: tuple[str | None, str]) -> list[Link]:
    """Return the shovels that move messages from a queue to others of this cluster."""
    links = [each.link for each in link_sources(view) if each.queue.key == place]
    return [link for link in links if link is not None and is_here(link) and link_targets(view, link)]


def _targets_of_shovels(view: View, finding: Finding) -> Iterable[Hashable]:
    place = (finding.subject.vhost, finding.subject.name)
    return [target for link in _shovels(view, place) for target in link_targets(view, link)]


def _automatic(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.facts["automatic"] else ()


def _only_queue(_view: View, finding: Finding) -> Iterable[Hashable]:
    queues = finding.involved.queues
    return ((queues[0].vhost, queues[0].name),) if len(queues) == 1 else ()


AUTOMATIC_BESIDE = Relation(_automatic, _only_queue)
"""The cause is that one of several applications acknowledges automatically; the consequence is about its queue."""

TARGETS_OF_SHOVELS = Relation(_targets_of_shovels, INVOLVED_QUEUES.of_other)
"""The cause is a queue from which a shovel takes messages; the consequence is about the target of the shovel."""


def _delivered(path: ConsumerPath) -> int:
    return count(path.channel.stats, "deliver", "deliver_no_ack") if path.channel else 0


def _finding(
    view: View, queue: Queue, groups: dict[_Application, list[ConsumerPath]], delivered: dict[_Application, int]
) -> Finding:
    total = sum(delivered.values())
    automatic_paths = _automatic_paths(groups)
    lasts = min((age_seconds(view, path.connection) for path in automatic_paths if path.connection), default=0.0)
    late = bool(automatic_paths) and lasts >= _TAKES_FOR
    applications: list[Fact] = [
        {
            "user": user,
            "product": product,
            "clients": client_names(groups[user, product]),
            "consumers": len(groups[user, product]),
            "share": number / total,
            "delivered": number,
        }
        for (user, product), number in sorted(delivered.items(), key=lambda item: (-item[1], item[0]))
    ]
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        facts={
            "queue": {"name": queue.name, "vhost": queue.vhost},
            "applications": applications,
            "automatic": client_names(automatic_paths),
            "automatic_delivered": sum(_delivered(path) for path in automatic_paths),
            "automatic_seconds": lasts if automatic_paths else None,
            "warning_after_seconds": _TAKES_FOR,
            "shovel_moves": [
                {
                    "name": link.name,
                    "vhost": link.vhost or "/",
                    "dynamic": link.type != "static",
                    "targets": sorted(name for _, name in link_targets(view, link)),
                }
                for link in _shovels(view, queue.key)
            ],
            "same_user": len({user for user, _ in groups}) == 1,
            "polled": None,
        },
        evidence=(
            Evidence(
                key="shares",
                source=source("/api/channels", "message_stats.deliver", "message_stats.deliver_no_ack")
                + source("/api/connections", "user", "client_properties.product"),
            ),
        ),
        involved=involved_consumers((queue,), [path for paths in groups.values() for path in paths]),
        certainty=Certainty.EARLY if automatic_paths and not late else Certainty.LIKELY,
        seen_seconds=lasts if automatic_paths else None,
    )


def _poller(view: View, found: PolledBeside) -> Connection | None:
    return view.connection(found.channels[0].connection_name) if found.channels else None


def _by_consumers_themselves(view: View, queue: Queue, found: PolledBeside) -> bool | None:
    """Return whether the client that polls may be an instance of the application that consumes; None if not known."""
    poller, links = _poller(view, found), view.links(queue)
    same = {
        same_application(each, link.connection) for each in ((poller,) if poller else found.suspects) for link in links
    }
    if True in same:
        return True
    return False if poller and same == {False} else None


def _polled_finding(view: View, queue: Queue, found: PolledBeside, *, known: bool) -> Finding:
    links, since, poller = view.links(queue), found.first, _poller(view, found)
    client = client_name(poller, found.channels[0].connection_name) if found.channels else None
    lasting = found.times >= _LASTING and found.latest.since(since) >= _LASTING_SECONDS
    # Consumers that acknowledge automatically can do without some messages, and may poll by the same code.
    careful = any(link.consumer.ack_required for link in links) and found.delivered > found.polled
    named, automatic = known or not found.channels, found.counter == AUTOMATIC
    involved, returned = involved_consumers((queue,), links), () if automatic else ("message_stats.redeliver",)
    connections = tuple(dict.fromkeys(each.connection_name for each in found.channels if each.connection_name))
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if automatic and lasting and careful and named else Severity.INFO,
        subject=queue_subject(queue),
        since=since.iso(),
        facts={
            "queue": {"name": queue.name, "vhost": queue.vhost},
            "applications": [],
            "shovel_moves": [],
            "automatic": [],
            "automatic_delivered": 0,
            "automatic_seconds": None,
            "warning_after_seconds": _TAKES_FOR,
            "same_user": False,
            "polled": {
                "client": client,
                "consumers": client_names(links),
                "messages": found.polled,
                "delivered": found.delivered,
                "share": found.polled / (found.polled + found.delivered),
                "automatic": automatic,
                "lasting": lasting,
                "watched_seconds": span(found.run),
                "ago_seconds": view.now.since(found.latest),
                "ever": count(queue.stats, found.counter),
            },
        },
        evidence=(
            Evidence(
                key="polled",
                value=found.polled,
                unit=Unit.MESSAGES,
                source=source("/api/queues", f"message_stats.{found.counter}", *returned),
            ),
            Evidence(
                key="delivered",
                value=found.delivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver", "message_stats.deliver_no_ack"),
            ),
            *(
                [
                    Evidence(
                        key="poller",
                        value=polls_since_opened(found.channels, found.counter),
                        unit=Unit.MESSAGES,
                        source=source("/api/channels", f"message_stats.{found.counter}"),
                        facts={"client": client},
                    )
                ]
                if client
                else []
            ),
        ),
        involved=replace(
            involved,
            channels=tuple(dict.fromkeys((*involved.channels, *(each.name for each in found.channels)))),
            connections=tuple(dict.fromkeys((*involved.connections, *connections))),
            clients=tuple(
                dict.fromkeys((*involved.clients, *([poller.client_name] if poller and poller.client_name else [])))
            ),
        ),
        certainty=Certainty.LIKELY,
        seen_seconds=span(found.run),
    )
