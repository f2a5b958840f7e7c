"""The table of rules, by what they are about. A new one costs its file, a line in its group, its test, its runbook."""

from diagnosis.contract import Rule
from diagnosis.rules import clients, cluster, consumers, nodes, probing, publishers, queues, topology

RULES: tuple[Rule, ...] = (
    *publishers.RULES,
    *consumers.RULES,
    *queues.RULES,
    *nodes.RULES,
    *cluster.RULES,
    *clients.RULES,
    *topology.RULES,
    *probing.RULES,
)
