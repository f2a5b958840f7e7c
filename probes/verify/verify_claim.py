"""What a claim is, what it is checked on, and what a check answers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from probes.settings import AmqpServer
from probes.verify.channel import RawChannel
from probes.verify.client import Client


class ClaimVerdict(StrEnum):
    """How a claim did against this broker."""

    HOLDS = "holds"
    DIFFERS = "differs"
    NOT_APPLICABLE = "not-applicable"
    """This version, or this broker as it is set up, has not what the claim speaks of."""
    NEEDS_LAB = "needs-lab"
    """It takes a broker that may be disturbed: `ackscope verify --lab`."""
    INCONCLUSIVE = "could-not-tell"
    """The check did not come to an end, or what it saw does not decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a check answers.

    Attributes:
        observed: one sentence that a person can compare with the claim.
        evidence: figures and answers of this broker that it rests on, one line each: what was done, what came back.
        because: for DIFFERS, why this version does so, with its source; "" where the claim holds.
    """

    verdict: ClaimVerdict
    observed: str
    evidence: tuple[str, ...]
    because: str = ""


class Manage(Protocol):
    """The management API of the broker, where its address was given."""

    async def queue(self, name: str) -> Mapping[str, Any] | None:
        """What `/api/queues/vhost/name` says; None where it knows no such queue. Its figures lag by up to 5 s."""
        ...


class Disturb(Protocol):
    """A private broker that may be disturbed."""

    @property
    def nodes(self) -> tuple[AmqpServer, ...]:
        """Every node, in order."""
        ...

    async def restart(self, node: int = 0) -> None:
        """Stop a node in order and start it again on the same data; returns when it is ready."""
        ...

    async def stop(self, node: int) -> None:
        """Stop a node."""
        ...

    async def start(self, node: int) -> None:
        """Start a stopped node; returns when it is ready."""
        ...

    async def alarm(self, *, on: bool) -> None:
        """Raise the memory alarm, or let it go."""
        ...


@dataclass(slots=True)
class CheckContext:
    """Where a claim is checked: one broker, and names of one's own.

    Attributes:
        version: of the broker, such as (4, 3, 6).
        prefix: every object that a check makes has a name that starts with this; all are swept at the end.
        manage: the management API; None without its address.
        disturb: a broker that may be disturbed; None on somebody's own.
    """

    server: AmqpServer
    version: tuple[int, ...]
    prefix: str
    manage: Manage | None = None
    disturb: Disturb | None = None
    queues: list[str] = field(default_factory=list)
    exchanges: list[str] = field(default_factory=list)

    async def client(self, name: str, *, heartbeat: int | None = None) -> Client:
        """A new connection; use it as a context manager."""
        return await Client.open(self.server, f"ackscope-verify {name}", heartbeat=heartbeat)

    async def queue(
        self, channel: RawChannel, name: str, queue_type: str = "classic", arguments: Mapping[str, object] | None = None
    ) -> str:
        """Make a durable, bounded queue that is swept at the end; its full name.

        Args:
            channel: where to declare it.
            name: unique in the run, best `<claim id>` or `<claim id>.<what>`.
            queue_type: classic, quorum or stream.
            arguments: beside its type and its expiry; no length limit is set: publish little.
        """
        full = f"{self.prefix}.{name}"
        if full not in self.queues:
            self.queues.append(full)
        expires = {} if queue_type == "stream" else {"x-expires": 300_000}
        await channel.declare(
            full, durable=True, arguments={"x-queue-type": queue_type, **expires, **(arguments or {})}
        )
        return full

    async def exchange(self, channel: RawChannel, name: str, kind: str = "fanout", **arguments: object) -> str:
        """Make an auto-delete exchange that is swept at the end; its full name."""
        full = f"{self.prefix}.{name}"
        if full not in self.exchanges:
            self.exchanges.append(full)
        await channel.exchange(full, kind, arguments=arguments)
        return full


Check = Callable[[CheckContext], Awaitable[Observed]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyClaim:
    """One documented claim.

    Attributes:
        id: S01 to S53.
        name: in a few words joined by hyphens; stable once released.
        group: delivery, prefetch, confirms, transactions, order.
        documented: the claim in our own words.
        source: the guide that makes it.
        alone: it measures a rate or a time: nothing else may run beside it.
        lab: without `CheckContext.disturb` there is nothing to check.
        seconds: the check gets as long before it could not tell.
    """

    id: str
    name: str
    group: str
    documented: str
    source: str
    check: Check
    alone: bool = False
    lab: bool = False
    seconds: float = 30.0
