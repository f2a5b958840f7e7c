"""The contract of a claim: its check, the context of the check, and its result."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from probes.settings import AmqpServer
from probes.verify.channel import RawChannel
from probes.verify.client import Client


class ClaimVerdict(StrEnum):
    """The verdict on a claim for this broker."""

    HOLDS = "holds"
    DIFFERS = "differs"
    NOT_APPLICABLE = "not-applicable"
    """This version or setup lacks the feature of the claim."""
    NEEDS_LAB = "needs-lab"
    """It needs a broker that may be disturbed: `ackscope verify --lab`."""
    INCONCLUSIVE = "could-not-tell"
    """The check did not finish, or its observations are inconclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The result of a check.

    Attributes:
        observed: one sentence that a person can compare with the claim.
        evidence: values and responses of this broker. Each line says what was done and the result.
        because: for DIFFERS, why this version differs, with a source; "" if the claim holds or no reason is known.
    """

    verdict: ClaimVerdict
    observed: str
    evidence: tuple[str, ...]
    because: str = ""


class Manage(Protocol):
    """The management API of the broker, if its address was given."""

    async def queue(self, name: str) -> Mapping[str, Any] | None:
        """Fetch `/api/queues/vhost/name`; None if there is no such queue. Its statistics lag by up to 5 s."""
        ...


class Disturb(Protocol):
    """A private broker that may be disturbed."""

    @property
    def nodes(self) -> tuple[AmqpServer, ...]:
        """Every node, in order."""
        ...

    async def restart(self, node: int = 0) -> None:
        """Stop a node in order and start it again with the same data. Returns when it is ready."""
        ...

    async def stop(self, node: int) -> None:
        """Stop a node."""
        ...

    async def start(self, node: int) -> None:
        """Start a stopped node. Returns when it is ready."""
        ...

    async def alarm(self, *, on: bool) -> None:
        """Raise or clear the memory alarm."""
        ...


@dataclass(slots=True)
class CheckContext:
    """The context of a check: the broker, and the names of its objects.

    Attributes:
        version: version of the broker, such as (4, 3, 6).
        prefix: prefix of the names of all objects of a check, which are deleted at the end.
        manage: the management API; None if no address was given.
        disturb: disturbs a private broker; None for a broker of the user.
    """

    server: AmqpServer
    version: tuple[int, ...]
    prefix: str
    manage: Manage | None = None
    disturb: Disturb | None = None
    queues: list[str] = field(default_factory=list)
    exchanges: list[str] = field(default_factory=list)

    async def client(self, name: str, *, heartbeat: int | None = None) -> Client:
        """Open a new connection. Use it as a context manager."""
        return await Client.open(self.server, f"ackscope-verify {name}", heartbeat=heartbeat)

    async def queue(
        self, channel: RawChannel, name: str, queue_type: str = "classic", arguments: Mapping[str, object] | None = None
    ) -> str:
        """Declare a durable queue that is deleted at the end. Returns its full name.

        Args:
            channel: channel that declares it.
            name: unique name in the run, usually `<claim id>` or `<claim id>.<what>`.
            queue_type: classic, quorum or stream.
            arguments: further arguments besides type and expiry. There is no length limit, so publish few messages.
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
        """Declare an auto-delete exchange that is deleted at the end. Returns its full name."""
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
        id: S01 to S53 for AMQP 0-9-1, A01 to A25 for AMQP 1.0.
        name: a few words joined by hyphens; stable once released.
        group: delivery, prefetch, confirms, transactions, order, amqp10.
        documented: the claim in our own words.
        source: the guide that it comes from.
        alone: whether it measures a rate or a time, so that nothing else may run in parallel.
        lab: whether it needs `CheckContext.disturb`.
        seconds: timeout of the check in seconds, after which its verdict is `could-not-tell`.
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
