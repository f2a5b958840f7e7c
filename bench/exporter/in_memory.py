"""`python in_memory.py QUEUES [WEB_CONFIG]`: serve the routes of an exporter from made snapshots, until stdin closes.

It prints its URL and the number of samples of its page. It is started by its path, so that the code of another checkout
can be measured too.
"""

import dataclasses
import sys
from pathlib import Path
from typing import Any

from ackscope.clock import Instant, SystemClock
from ackscope.snapshot import Snapshot
from ackscope.tuning import tune
from bench.diagnosis.size import film
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.page_cache import PageCache
from exporter.exposition.render_thread import RenderThread
from exporter.exposition.settings import MetricsSettings
from exporter.routes import RouteContext, make_routes
from exporter.runtime.reloader import ReloadResult
from exporter.runtime.state import StateStore
from exporter.web.config import WebConfig
from exporter.web.http import Request, Response
from exporter.web.server import HttpServer

_EVERY_KIND = 1_000_000
_SNAPSHOTS = 5


def _now(snapshot: Snapshot, now: Instant, number: int) -> Snapshot:
    """The snapshot as if it had been read just now."""
    at = dataclasses.replace(now, wall=now.wall + number, mono=now.mono + number)
    parts: dict[str, Any] = {name: dataclasses.replace(part, at=at) for name, part in snapshot.parts.items()}
    return dataclasses.replace(snapshot, taken=at, **parts)


def main(queues: int, web: Path | None) -> None:
    """Serve until stdin closes."""
    tune()
    clock, states = SystemClock(), StateStore(["bench"])
    began = clock.now()
    for number, snapshot in enumerate(film(queues, 0.02)):
        if number == _SNAPSHOTS:
            break
        states.put_snapshot(_now(snapshot, began, number - _SNAPSHOTS))
    kinds: dict[str, Any] = {name: _EVERY_KIND for name in MetricsSettings.model_fields if name.startswith("max_")}
    page = PageCache(states, TopK(MetricsSettings(**kinds)), {}, clock)
    context = RouteContext(
        state=states,
        exposition=page,
        status=lambda: None,
        probe_page=lambda _: Response(b"no probes\n"),
        reload=lambda: ReloadResult(ok=True, line="nothing to reload"),
        clock=clock,
    )
    routes = make_routes(context)
    text = routes["/metrics"].handle(Request())
    samples = sum(
        not line.startswith(b"#") for chunk in (text.body, *text.chunks) for line in chunk.splitlines() if line
    )
    render_thread = RenderThread(page.refresh, clock, page.tick)
    render_thread.start()
    render_thread.wake()
    server = HttpServer(("127.0.0.1", 0), routes, None if web is None else WebConfig(web))
    server.start()
    print(server.url, samples, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
