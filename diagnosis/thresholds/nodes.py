"""Numbers that the rules about nodes and what they run on (D) judge by."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class NodeThresholds(Settings):
    """Of the rules about nodes and what they run on (D).

    Attributes:
        memory_near: memory used, of the limit, from which on the alarm is near (catalogue: 0.8).
        memory_near_for: how long that must last for a warning (catalogue: 5 min); garbage collection ends before.
        memory_eta: a limit that is reached sooner than this, at the pace of the last quarter of an hour, is a warning
            (catalogue: 30 min).
        memory_unused: share of a node's memory that its allocators keep and do not use (catalogue: 0.4). It is told
            from half the limit on only: of an idle node most is unused.
        memory_unused_least: and so many bytes: code and tables of a small node are most of it.
        disk_eta: a disk that is full sooner than this, at its present pace, is told (catalogue: 24 h).
        disk_eta_soon: the same after a short look, or where it becomes a warning after minutes.
        disk_watched: how long it must have been falling for a forecast of a day (a log rotation falls and rises).
        disk_watched_soon: the same for a forecast of `disk_eta_soon`; a burst of messages ends before.
        disk_look: the least time that tells anything; the broker looks at its disk every 10 s.
        disk_unsafe_limit: a free disk limit that is no protection, bytes: RabbitMQ's default of 50 MB.
            Source: https://www.rabbitmq.com/docs/production-checklist#resource-limits-disk-space
        fd_near, fd_critical: file handles in use, of those allowed. Since 4.0 the node ends when it has none left
            (catalogue: 0.7 and 0.85).
        sockets_critical: connections, of those that 3.x allows itself; at the limit no client gets in.
        processes_near, processes_critical: Erlang processes in use, of those allowed (catalogue: 0.7); the node ends
            when it has none left.
        cpu_queue: Erlang processes that wait for a processor, for each processor (catalogue: 3).
        cpu_for: how long that must last for a warning; a start or a burst of connections ends before.
        slow_confirm: seconds for a confirm that waits for the disk, from which on the disk is slow (catalogue: 0.1).
        slow_times: and so many times what a question to the broker takes that needs no disk (catalogue: 5).
        restart_told: how long a restart is told.
        restart_loop: how many restarts within two hours are a warning.
        overload_seconds: how long the management API takes for an answer that makes it overloaded (catalogue: 5 s).
        overload_readings: for how many readings in a row (catalogue: 3).
        certificate_days: days before a certificate ends that it becomes a warning; the broker looks a month ahead.
        vhost_down_for: how long a virtual host must be down: one that fell over once starts again by itself.
        hung_for: how long nothing must have been read of a node that takes connections and does not answer.
        listener_for: how long the API must have refused while probes are served; of a node that stops they say sooner.
        starts_for: seconds after its start in which a node is not judged by what it refuses or how fast it answers.
    """

    memory_near: float = Field(default=0.8, gt=0.0, lt=1.0)
    memory_near_for: Seconds = 300.0
    memory_eta: Seconds = 1800.0
    memory_unused: float = Field(default=0.4, gt=0.0, lt=1.0)
    memory_unused_least: int = Field(default=256 * 2**20, ge=0)
    disk_eta: Seconds = 86_400.0
    disk_eta_soon: Seconds = 3600.0
    disk_watched: Seconds = 1800.0
    disk_watched_soon: Seconds = 300.0
    disk_look: Seconds = 20.0
    disk_unsafe_limit: int = Field(default=50_000_000, ge=0)
    fd_near: float = Field(default=0.7, gt=0.0, lt=1.0)
    fd_critical: float = Field(default=0.85, gt=0.0, lt=1.0)
    sockets_critical: float = Field(default=0.95, gt=0.0, le=1.0)
    processes_near: float = Field(default=0.7, gt=0.0, lt=1.0)
    processes_critical: float = Field(default=0.9, gt=0.0, lt=1.0)
    cpu_queue: float = Field(default=3.0, gt=0.0)
    cpu_for: Seconds = 120.0
    slow_confirm: Seconds = 0.1
    slow_times: float = Field(default=5.0, ge=1.0)
    restart_told: Seconds = 900.0
    restart_loop: int = Field(default=3, ge=2)
    overload_seconds: Seconds = 5.0
    overload_readings: int = Field(default=3, ge=1)
    certificate_days: float = Field(default=30.0, ge=0.0)
    vhost_down_for: Seconds = 8.0
    hung_for: Seconds = 8.0
    listener_for: Seconds = 8.0
    starts_for: Seconds = 60.0

    @classmethod
    def one_shot(cls) -> Self:
        """For two looks 6 to 10 s apart."""
        return cls(memory_near_for=4.0, overload_readings=1, vhost_down_for=4.0, hung_for=4.0, listener_for=4.0)
