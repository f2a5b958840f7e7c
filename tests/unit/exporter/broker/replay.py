"""A simulated broker with any number of queues: totals, pages and single queues, as RabbitMQ returns them."""

from urllib.parse import parse_qs, unquote, urlsplit

from tests.unit.exporter.broker.server import json


def by_query(*, totals, page):
    """A route for `/api/queues`: the answer to a request for totals, and the items of the only page."""

    def answer(request):
        if "disable_stats=true" in request.path:
            json(totals)(request)
        else:
            json({"page": 1, "page_count": 1, "items": page})(request)

    return answer


class Replay:
    """Queues by name, all in one virtual host; a test may change `queues`.

    Attributes:
        queues: name -> fields of its statistics that differ from the default.
        requested: names of the requested single queues, in order.
        pages: numbers of the requested pages, in order.
        totals: number of requests for totals.
    """

    SIZE = 500

    def __init__(self, names):
        self.queues = {name: {} for name in names}
        self.requested, self.pages, self.totals = [], [], 0

    def totals_of(self, name):
        """What `disable_stats=true&enable_queue_totals=true` returns for a queue."""
        held = self.queues[name]
        ready, unacked = held.get("messages_ready", 0), held.get("messages_unacknowledged", 0)
        return {
            "vhost": "/",
            "name": name,
            "type": "classic",
            "state": "running",
            "node": held.get("node", "lab1@localhost"),
            "arguments": held.get("arguments", {}),
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "messages": ready + unacked,
            "messages_ready": ready,
            "messages_unacknowledged": unacked,
        }

    def details_of(self, name):
        """What the API returns for a single queue."""
        return {
            **self.totals_of(name),
            "consumers": 0,
            "memory": 9000,
            "policy": None,
            "effective_policy_definition": {},
            "message_stats": {"publish": 7},
            **self.queues[name],
        }

    def routes(self):
        """All routes, including those of single queues."""
        return Routes(self)


class Routes(dict):
    """Routes of a replay; those of single queues are created on demand."""

    def __init__(self, replay):
        super().__init__({"/api/queues": self._queues})
        self._replay = replay

    def _queues(self, request):
        replay, query = self._replay, parse_qs(urlsplit(request.path).query)
        names = sorted(replay.queues)
        if query.get("disable_stats") == ["true"]:
            replay.totals += 1
            json([replay.totals_of(name) for name in names])(request)
            return
        page = int(query["page"][0])
        replay.pages.append(page)
        items = [replay.details_of(name) for name in names[(page - 1) * replay.SIZE : page * replay.SIZE]]
        json({"page": page, "page_count": -(-len(names) // replay.SIZE), "items": items})(request)

    def get(self, path, default=None):
        """The route of a path."""
        if not path.startswith("/api/queues/"):
            return super().get(path, default)
        name = unquote(path.rpartition("/")[2])
        self._replay.requested.append(name)
        return json(self._replay.details_of(name)) if name in self._replay.queues else default
