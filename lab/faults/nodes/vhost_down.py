"""vhost-down: the supervisor of a virtual host and its processes are stopped.

The broker restarts a virtual host that fails by itself, but not one whose supervisor has given up.
Source: https://www.rabbitmq.com/docs/vhosts#failure-handling
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import fails, run_inside, until

VHOST = "fault.vhost-down"
_END = (
    'L = fun G() -> catch (begin {ok, P} = rabbit_vhost_sup_sup:get_vhost_sup(<<"fault.vhost-down">>), '
    "[catch supervisor:terminate_child(rabbit_vhost_sup_sup, W) "
    "|| {_, W, _, _} <- supervisor:which_children(rabbit_vhost_sup_sup), "
    "lists:member(P, [element(2, X) || X <- (catch supervisor:which_children(W))])] end), "
    "timer:sleep(500), G() end, L()"
)
"""Repeated, because 4.x restarts a stopped virtual host every 30 s."""


def inject(fault: Fault) -> None:
    """Create a virtual host with a queue and stop it; delete it at the end."""
    fault.later(lambda: fault.lab.ctl(0, "delete_vhost", VHOST))
    fault.ask("PUT", f"/api/vhosts/{VHOST}", {})
    fault.ask("PUT", f"/api/permissions/{VHOST}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    fault.ask("PUT", f"/api/queues/{VHOST}/fault.vhost-down", {"durable": True})
    run_inside(fault, _END)
    until(fault, lambda: fails(fault, "virtual-hosts"), "the virtual host down")
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="vhost-down",
    rule="vhost-down",
    summary="a virtual host is stopped on its node and not restarted",
    subject=Subject(kind="vhost", name=VHOST),
    inject=inject,
)
