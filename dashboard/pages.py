"""The pages, in the order of the navigation."""

from dashboard.ui.layout import DashboardPage
from dashboard.views import (
    confirms,
    consumers,
    fleet,
    nodes,
    probe,
    queues,
    redeliveries,
    semantics,
    timeline,
    topology,
)
from dashboard.views.history import page as history
from dashboard.views.now import page as now

PAGES = (
    DashboardPage("Now", "", "what is wrong, since when, and what to do", now.render),
    DashboardPage("Fleet", "fleet", "all clusters, worst first; select one to open it", fleet.render),
    DashboardPage("Confirms", "confirms", "confirm latency, and which layer it is spent in", confirms.render),
    DashboardPage("Queues", "queues", queues.MEANING, queues.render, headed=False),
    DashboardPage(
        "Consumers", "consumers", "unacknowledged messages of each consumer and its prefetch limit", consumers.render
    ),
    DashboardPage(
        "Redeliveries", "redeliveries", "redelivery rates, loops and dead-letter routes", redeliveries.render
    ),
    DashboardPage("Nodes", "nodes", "how close each node is to its limits", nodes.render),
    DashboardPage("History", "history", "changes, recurring findings, worst queues, capacity forecast", history.render),
    DashboardPage("Timeline", "timeline", "findings, changes and notes in order of time", timeline.render),
    DashboardPage("Topology", "topology", "who publishes through which exchanges to which queues", topology.render),
    DashboardPage("Semantics", "semantics", "what acks and confirms guarantee on this broker", semantics.render),
    DashboardPage("Probe", "probe", "run a probe now", probe.render),
)
