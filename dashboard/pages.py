"""The pages, in the order of the way through them."""

from dashboard.shell import Page
from dashboard.views import (
    confirms,
    consumers,
    nodes,
    now,
    past,
    probe_now,
    queues,
    redeliveries,
    semantics,
    timeline,
    topology,
)

PAGES = (
    Page("Now", "", "is it bad, for whom, since when, what do I do", now.render),
    Page("Confirms", "confirms", "what a confirm costs, and where the time goes", confirms.render),
    Page("Queues", "queues", "every queue, what hurts first", queues.render),
    Page("Consumers", "consumers", "who holds what, against its prefetch", consumers.render),
    Page("Redeliveries", "redeliveries", "what is delivered again and again", redeliveries.render),
    Page("Nodes", "nodes", "how far each is from its limits", nodes.render),
    Page("History", "history", "what changed, what comes back, what is worst, when is it full", past.render),
    Page("Timeline", "timeline", "what happened, in order, with notes", timeline.render),
    Page("Topology", "topology", "what is around one queue", topology.render),
    Page("Semantics", "semantics", "what acks and confirms mean on this broker", semantics.render),
    Page("Probe", "probe", "run a probe or a sweep now", probe_now.render),
)
