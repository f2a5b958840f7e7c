"""The pages, in the order of the way through them."""

from dashboard.ui.layout import DashboardPage
from dashboard.views import confirms, consumers, nodes, probe, queues, redeliveries, semantics, timeline, topology
from dashboard.views.history import page as history
from dashboard.views.now import page as now

PAGES = (
    DashboardPage("Now", "", "is it bad, for whom, since when, what do I do", now.render),
    DashboardPage("Confirms", "confirms", "what a confirm costs, and where the time goes", confirms.render),
    DashboardPage("Queues", "queues", "every queue, what hurts first", queues.render),
    DashboardPage("Consumers", "consumers", "who holds what, against its prefetch", consumers.render),
    DashboardPage("Redeliveries", "redeliveries", "what is delivered again and again", redeliveries.render),
    DashboardPage("Nodes", "nodes", "how far each is from its limits", nodes.render),
    DashboardPage(
        "History", "history", "what changed, what comes back, what is worst, when is it full", history.render
    ),
    DashboardPage("Timeline", "timeline", "what happened, in order, with notes", timeline.render),
    DashboardPage("Topology", "topology", "what is around one queue", topology.render),
    DashboardPage("Semantics", "semantics", "what acks and confirms mean on this broker", semantics.render),
    DashboardPage("Probe", "probe", "run a probe or a sweep now", probe.render),
)
