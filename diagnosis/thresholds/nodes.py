"""Thresholds of the rules about nodes and what they run on (D)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class NodeThresholds(Settings):
    """Of the rules about nodes and what they run on (D).

    Attributes:
        memory_near: A node that uses more than this share of its memory limit is near the alarm.
        memory_near_for: A node that is near its limit for this long is a warning; garbage collection ends sooner.
        memory_eta: A node whose peaks lead to the limit sooner than this, by the trend of the last 15 min, is a
            warning.
        memory_unused: A node whose allocators hold more than this share of its memory unused is reported, above half of
            its limit.
        memory_unused_least: Unused memory below this many bytes is not reported; of a small node, code and tables are
            most.
        disk_eta: A disk that reaches its limit sooner than this, by its trend, is reported.
        disk_eta_soon: The same for a trend that was watched only briefly.
        disk_watched: A forecast of up to a day needs a trend of this long; a log rotation falls and rises again.
        disk_watched_soon: A forecast of up to an hour needs a trend of this long for a warning; a burst of messages
            ends sooner.
        disk_look: A trend shorter than this proves nothing; the broker checks its disk every 10 s.
        disk_unsafe_limit: A free disk limit of this many bytes or fewer does not protect a node; it is RabbitMQ's
            default of 50 MB.
            Source: https://www.rabbitmq.com/docs/production-checklist#resource-limits-disk-space
        fd_near: A node that uses more than this share of its file descriptors is a warning; since 4.0 it stops without
            any left.
        fd_critical: A node that uses more than this share of its file descriptors is critical.
        sockets_critical: A 3.x node that uses this share of its sockets is critical; at the limit it serves no new
            client.
        processes_near: A node that uses more than this share of its Erlang processes is a warning; without any left it
            stops.
        processes_critical: A node that uses more than this share of its Erlang processes is critical.
        cpu_queue: A node is saturated when more than this many Erlang processes wait for each CPU core.
        cpu_for: A node that is saturated for this long is a warning; a start or a burst of connections ends sooner.
        slow_confirm: A confirm that waits for the disk is slow when it takes longer than this.
        slow_times: A confirm is slow only if it takes this many times as long as an operation that needs no disk.
        restart_told: A restart is reported for this long.
        restart_loop: This many restarts within two hours are a warning.
        overload_seconds: An answer of the management API that takes longer than this means that it is overloaded.
        overload_readings: The management API is a warning after this many slow readings in a row.
        certificate_days: A certificate that expires in fewer days than this is a warning; the broker looks one month
            ahead.
        vhost_down_for: A vhost that is down for this long is critical; the broker restarts one that failed once sooner.
        hung_for: A node is hung when nothing could be read from it for this long and probes get no answer.
        listener_for: The management API must refuse for this long while probes are served; when a node stops, its
            probes fail sooner.
        starts_for: A node is not judged by what it refuses, or how slow it is, for this long after its start.
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
        """For two readings 6 to 10 s apart."""
        return cls(memory_near_for=4.0, overload_readings=1, vhost_down_for=4.0, hung_for=4.0, listener_for=4.0)
