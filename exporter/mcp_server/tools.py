"""The tools of the MCP server. Each answers in less than 4 kB of JSON, with its evidence, and says what was cut.

The docstring of a tool is what a language model reads of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import orjson

from ackscope.errors import DataError, UsageError
from ackscope.object_path import Place
from exporter.commands.bundle import write_whole
from exporter.mcp_server import answers
from exporter.mcp_server.api import ExporterApi
from exporter.mcp_server.limit import bounded

QUESTIONS = ("worst", "weeks", "capacity", "slo", "recurrences")
Question = Literal["worst", "weeks", "capacity", "slo", "recurrences"]
SeverityName = Literal["critical", "warning", "info"]

_MANY = 200
"""Objects of one kind that an answer starts from; it is cut to its size afterwards."""
_CONSUMER_COLUMNS = "vhost,queue,tag,channel_name,connection_name,user,node,ack_required,active,prefetch_count"
_CONNECTION_COLUMNS = "name,vhost,user,node,state,client_name,peer_host,protocol,channels,send_pend"
_CHANNEL_COLUMNS = (
    "name,connection_name,vhost,user,node,state,consumer_count,messages_unacked,messages_unconfirmed,prefetch_count,"
    "lately.publish,lately.ack,lately.redeliver"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBox:
    """The tools, as methods. All only read.

    Attributes:
        api: the exporter.
        rollups: folder of the pipeline's results; None: no history.
        bundles: folder for bundles; None: none is written.
        broker: makes a fresh diagnosis of a broker and returns its entry of `/api/v1/findings`; None: not configured.
    """

    api: ExporterApi
    rollups: Place | None = None
    bundles: Path | None = None
    broker: Callable[[], dict[str, Any]] | None = None

    def findings(self, cluster: str | None = None, severity: SeverityName | None = None) -> str:
        """What is wrong with the RabbitMQ clusters now, worst first. Start here.

        Each finding is one cause, with the first thing to do. Pass its rule and its subject's name to `explain` for
        evidence and all steps. `clusters` says whether the diagnosis is complete: inconclusive rules may hide a fault.

        Args:
            cluster: only this cluster; all without it.
            severity: only findings of this severity.
        """
        return bounded(answers.listed(self._clusters(cluster), severity))

    def explain(
        self,
        rule: str | None = None,
        name: str | None = None,
        vhost: str | None = None,
        kind: str | None = None,
        cluster: str | None = None,
    ) -> str:
        """One finding in full: cause, evidence with its source in the management API, and all steps with commands.

        Without arguments it explains the worst finding. If several match, the worst is explained and the others are
        named in `others`.

        Args:
            rule: name of the rule, as `findings` gives it.
            name: name of the subject.
            vhost: virtual host of the subject.
            kind: kind of the subject, such as queue or node.
            cluster: only this cluster.
        """
        found = answers.select(self._clusters(cluster), rule, name, vhost, kind)
        if not found:
            return bounded({"finding": None, "because": "no such finding is present; call findings to see all"})
        where, finding = found[0]
        document = answers.explained(where, finding, f"{self.api.url}/runbook?rule={quote(finding['rule'])}")
        others = [f"{it['rule']} on {it['subject']['kind']} {it['subject']['name']}" for _, it in found[1:_MANY]]
        return bounded({**document, **({"others": others} if others else {})})

    def queue(self, name: str, vhost: str = "/", cluster: str | None = None) -> str:
        """One queue: recent backlog and rates against what is usual, its balance of messages, consumers and findings.

        Args:
            name: name of the queue.
            vhost: its virtual host.
            cluster: needed if several clusters are watched.
        """
        where = self._one(cluster)
        found = self.api.document("/api/v1/queue", cluster=where, vhost=vhost, queue=name)
        consumers = self._list(where, "consumers", _CONSUMER_COLUMNS)
        own = [it for it in consumers if (it.get("vhost"), it.get("queue")) == (vhost, name)]
        usual = {
            line: f"{band['low']:.3g} to {band['high']:.3g}" if "low" in band else band["because"]
            for line, band in found["usual"].items()
        }
        return bounded(
            {
                "cluster": where,
                "queue": {"vhost": vhost, "name": name, "known": found["known"]},
                "findings": answers.about(self._clusters(where), answers.of_queue(vhost, name)),
                "lines": answers.lines(found["lines"]),
                "usual": usual,
                "ledger": {key: value for key, value in found["ledger"].items() if value is not None},
                "consumer_count": len(own),
                "consumers": own[:_MANY],
                "source": f"/api/v1/queue of {self.api.url}, from /api/queues and /api/consumers of the broker",
            }
        )

    def client(self, name: str, cluster: str | None = None) -> str:
        """An application, host, connection or consumer: its connections, channels and consumers, and its findings.

        Args:
            name: part of the name that the application gives its connection, of its host and port, of its user, or of
                a consumer's tag.
            cluster: needed if several clusters are watched.
        """
        where = self._one(cluster)
        wanted = name.lower()

        def matching(listed: str, columns: str) -> list[dict[str, Any]]:
            every = self._list(where, listed, columns)
            return [it for it in every if any(wanted in str(value).lower() for value in it.values())]

        connections = matching("connections", _CONNECTION_COLUMNS)
        names = {it["name"] for it in connections}
        channels = [
            it
            for it in self._list(where, "channels", _CHANNEL_COLUMNS)
            if it.get("connection_name") in names or wanted in str(it.get("name", "")).lower()
        ]
        consumers = [
            it
            for it in self._list(where, "consumers", _CONSUMER_COLUMNS)
            if it.get("connection_name") in names or wanted in str(it.get("tag", "")).lower()
        ]
        return bounded(
            {
                "cluster": where,
                "client": name,
                "findings": answers.about(self._clusters(where), answers.of_client(name)),
                "counts": {
                    "connections": len(connections),
                    "channels": len(channels),
                    "consumers": len(consumers),
                },
                "connections": connections[:_MANY],
                "channels": channels[:_MANY],
                "consumers": consumers[:_MANY],
                "source": f"/api/v1/columns of {self.api.url}, from /api/connections, channels and consumers",
            }
        )

    def history(self, question: Question | None = None, by: str | None = None, cluster: str | None = None) -> str:
        """What the history says, as of the last hour: computed by the pipeline from weeks of measurements.

        Questions: `worst` (the worst objects of the last week), `weeks` (this week against the one before), `capacity`
        (what runs full, and when), `slo` (share of probe messages in time), `recurrences` (findings that return).

        Args:
            question: one of these; without it, the first sentence of each.
            by: for `worst`: the measure; without it, all of them.
            cluster: needed if several clusters are watched.
        """
        if self.rollups is None:
            raise UsageError("no history: start ackscope mcp with --rollups DIR, the folder that the pipeline writes")
        where = self._one(cluster)
        path = self.rollups / "_answers" / f"{quote(where, safe='')}.json"
        try:
            document = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            raise DataError(f"no answers for {where} yet: the pipeline writes them every hour") from None
        except (OSError, ValueError):
            raise DataError(f"{path}: cannot be read") from None
        made_at = {"cluster": where, "made_at": document.get("made_at"), "source": str(path)}
        if question is None:
            first = {name: _first_sentences(document.get(name)) for name in QUESTIONS}
            return bounded({**made_at, "questions": first})
        found = document.get(question)
        if question == "worst" and isinstance(found, dict):
            if by is not None and by not in found:
                raise UsageError(f"by: {by!r} is not known; known: {', '.join(found)}")
            found = found[by] if by is not None else {name: _without_rows(it) for name, it in found.items()}
        return bounded({**made_at, question: found})

    def diagnose(self) -> str:
        """A fresh diagnosis of the broker that this server was started for, by two readings; takes about 12 seconds.

        It reads the broker itself, not the exporter, and knows only these seconds: use `findings` for what lasts.
        """
        if self.broker is None:
            raise UsageError("no broker is configured; start ackscope mcp with --management URL")
        return bounded(answers.listed([self.broker()], None))

    def bundle(self, cluster: str | None = None) -> str:
        """Everything that the diagnosis of a cluster knows, as a file for `ackscope diagnose --bundle`.

        It contains names, but no messages and no passwords. Without a folder for bundles, only its size is returned,
        and the address to download it from.

        Args:
            cluster: needed if several clusters are watched.
        """
        where = self._one(cluster)
        content = self.api.content("/api/v1/bundle", cluster=where)
        document: dict[str, Any] = {
            "cluster": where,
            "bytes": len(content),
            "download": f"{self.api.url}/api/v1/bundle?cluster={quote(where)}",
        }
        if self.bundles is not None:
            made = self._clusters(where)[0]
            path = self.bundles / f"{quote(where, safe='')}-{made['now'].replace(':', '')}.ackscope"
            write_whole(path, content)
            document |= {"file": str(path), "diagnose": f"ackscope diagnose --bundle {path}"}
        return bounded(document)

    def _clusters(self, cluster: str | None) -> list[dict[str, Any]]:
        query = {} if cluster is None else {"cluster": cluster}
        document = self.api.document("/api/v1/findings", **query)
        return [{**it, "now": document["now"]} for it in document["clusters"]]

    def _one(self, cluster: str | None) -> str:
        if cluster is not None:
            return cluster
        names = [it["cluster"] for it in self._clusters(None)]
        if len(names) != 1:
            raise UsageError(f"cluster: choose one of {', '.join(names)}")
        return str(names[0])

    def _list(self, cluster: str, listed: str, columns: str) -> list[dict[str, Any]]:
        return answers.rows(self.api.document("/api/v1/columns", cluster=cluster, list=listed, columns=columns))


def _first_sentences(answer: Any) -> Any:
    """Return the first two sentences of an answer, or the reason why it has none."""
    if not isinstance(answer, dict):
        return None
    if "told" in answer:
        return answer["because"] or answer["told"][:2]
    if "rows" in answer:
        return f"{answer.get('all', len(answer['rows']))} rows"
    return {name: _first_sentences(it) for name, it in answer.items()}


def _without_rows(answer: Any) -> Any:
    return {name: it for name, it in answer.items() if name != "rows"} if isinstance(answer, dict) else answer
