"""What the search of the frame finds: findings, queues, clients, hosts, nodes and clusters. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from ackscope import format as fmt
from ackscope.reports import FindingReport
from dashboard.format import readable
from dashboard.frames import finding_rows
from dashboard.frames.client_names import client_names

MOST = 6
"""Hits of each kind."""


class SearchHit(NamedTuple):
    """One hit, and the page that it leads to.

    Attributes:
        kind: Finding, Queue, Client, Host, Node or Cluster.
        text: what was found; may be foreign text, as `detail`.
        page: path of the page.
        query: query parameters of its address.
    """

    kind: str
    text: str
    detail: str
    page: str
    query: dict[str, str]


class _Needle:
    """The words of a search text, all of which have to occur, in any case."""

    def __init__(self, text: str) -> None:
        self.words = text.casefold().split()
        self._whole = " ".join(self.words)

    def rank(self, *texts: str) -> int | None:
        """0 if the first text is what was searched for, 1 if it starts with it, 2 if it is found; else None."""
        first = texts[0].casefold()
        if first == self._whole:
            return 0
        if first.startswith(self._whole):
            return 1
        joined = " ".join(texts).casefold()
        return 2 if all(word in joined for word in self.words) else None


def search(
    text: str,
    clusters: Sequence[tuple[str, Sequence[FindingReport]]],
    current: str | None,
    queues: pd.DataFrame,
    consumers: pd.DataFrame,
    connections: pd.DataFrame,
    nodes: Iterable[str],
) -> list[SearchHit]:
    """The hits for a text, at most `MOST` of each kind, the best first; without a text, the findings.

    Args:
        text: its words have to occur in the name or, for findings, in the summary.
        clusters: the clusters with their findings.
        current: the cluster of the other arguments, whose findings come first.
        queues: columns `vhost`, `name` and `messages_ready`.
        consumers: rows of `consumer_rows`.
        connections: columns `name`, `client_name`, `user` and `peer_host`.
        nodes: names of the nodes.
    """
    needle = _Needle(text)
    ordered = sorted(clusters, key=lambda item: item[0] != current)
    found = [_best(needle, _findings(ordered))]
    if text.strip() and current is not None:
        found += [
            _best(needle, _queues(needle, queues)),
            _best(needle, _clients(consumers, connections)),
            _best(needle, _hosts(consumers, connections)),
        ]
    if text.strip():
        found += [
            _best(needle, ((SearchHit("Node", name, "", "nodes", {}), ()) for name in nodes)),
            _best(needle, ((SearchHit("Cluster", name, "", "", {"cluster": name}), ()) for name, _ in ordered)),
        ]
    return [hit for hits in found for hit in hits]


_Candidate = tuple[SearchHit, Sequence[str]]
"""A possible hit, and further texts that are searched."""


def _best(needle: _Needle, candidates: Iterable[_Candidate]) -> list[SearchHit]:
    ranked = ((needle.rank(hit.text, *more), hit) for hit, more in candidates)
    # The sort is stable: hits of one rank keep their order.
    return [hit for _, hit in sorted(((rank, hit) for rank, hit in ranked if rank is not None), key=_rank)][:MOST]


def _rank(item: tuple[int, SearchHit]) -> int:
    return item[0]


def _findings(clusters: Iterable[tuple[str, Sequence[FindingReport]]]) -> Iterator[_Candidate]:
    for cluster, findings in clusters:
        for address, finding in finding_rows.addresses(findings).items():
            detail = f"{finding.severity.value}, {finding.subject}, cluster {cluster}"
            hit = SearchHit("Finding", finding.rule, detail, "", {"cluster": cluster, "finding": address})
            yield hit, (str(finding.subject), finding.summary)


def _queues(needle: _Needle, queues: pd.DataFrame) -> Iterator[_Candidate]:
    names = queues["name"].astype(str)
    # Most of up to 100,000 queues are excluded by their names before Python looks at each.
    keep = pd.Series(data=True, index=queues.index)
    for word in needle.words:
        keep &= names.str.casefold().str.contains(word, regex=False)
    ready = pd.to_numeric(queues["messages_ready"], errors="coerce")
    rows = queues[keep].loc[ready[keep].sort_values(ascending=False).index]
    for vhost, name, waiting in rows[["vhost", "name", "messages_ready"]].itertuples(index=False):
        detail = f"vhost {vhost}, {readable.count(waiting)} ready"
        yield SearchHit("Queue", name, detail, "queues", {"queue": name, "vhost": vhost}), ()


def _clients(consumers: pd.DataFrame, connections: pd.DataFrame) -> Iterator[_Candidate]:
    for client, rows in consumers[consumers["client"] != ""].groupby("client", sort=True):
        queues = sorted(set(rows["queue"]))
        detail = f"{fmt.plural(len(rows), 'consumer')} of {', '.join(queues[:3])}{' …' if len(queues) > 3 else ''}"
        yield SearchHit("Client", str(client), detail, "consumers", {"find": str(client)}), ()
    yield from _without_consumers("Client", client_names(connections), consumers["client"])


def _hosts(consumers: pd.DataFrame, connections: pd.DataFrame) -> Iterator[_Candidate]:
    for host, rows in consumers[consumers["host"] != ""].groupby("host", sort=True):
        yield SearchHit("Host", str(host), fmt.plural(len(rows), "consumer"), "consumers", {"find": str(host)}), ()
    yield from _without_consumers("Host", connections["peer_host"].dropna(), consumers["host"])


def _without_consumers(kind: str, names: pd.Series, consuming: pd.Series) -> Iterator[_Candidate]:
    """Those that only publish, or do nothing."""
    counts = names[names.ne("") & ~names.isin(consuming)].value_counts().sort_index()
    for name, number in counts.items():
        detail = f"{fmt.plural(number, 'connection')}, no consumer"
        yield SearchHit(kind, str(name), detail, "consumers", {"find": str(name)}), ()
