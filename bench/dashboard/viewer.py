"""A viewer without a browser: speaks Streamlit's protocol over a websocket, and refreshes at the page's intervals."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from ackscope.errors import BrokerError

_TIMEOUT_SECONDS = 120.0
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class ViewerStats:
    """Measurements of one viewer.

    Attributes:
        runs: duration of each run of the page or of a fragment, from request to end, in seconds.
        received: bytes.
    """

    runs: list[float] = field(default_factory=list)
    received: int = 0


class Viewer:
    """One session on one page.

    Args:
        base: URL of the dashboard.
        path: path of the page, "" for the first page.
        query: query string without the question mark.

    Raises:
        BrokerError: the server cannot be reached, or the page fails.
    """

    def __init__(self, base: str, path: str = "", query: str = "") -> None:
        self.stats = ViewerStats()
        self._path, self._query = path, query
        self._timers: dict[str, float] = {}
        self._known: dict[str, None] = {}
        self._hash = ""
        try:
            self._socket = connect(
                f"{base.replace('http', 'ws', 1)}/_stcore/stream",
                subprotocols=[Subprotocol("streamlit")],
                max_size=_MAX_MESSAGE_BYTES,
            )
        except OSError as error:
            raise BrokerError(f"{base}: no viewer can connect ({error})") from None

    def __enter__(self) -> Self:
        self.run()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def fragments(self) -> dict[str, float]:
        """Fragments of the page that refresh on their own: name -> interval in seconds."""
        return dict(self._timers)

    def run(self, fragment: str = "") -> None:
        """Request the page or one fragment, as a browser does, and receive it completely.

        Raises:
            BrokerError: it failed, or took too long.
        """
        if not fragment:
            self._timers.clear()
        state = ClientState(
            query_string=self._query,
            page_script_hash=self._hash,
            page_name="" if self._hash else self._path,
            fragment_id=fragment,
            is_auto_rerun=bool(fragment),
            cached_message_hashes=list(self._known),
        )
        began = time.monotonic()
        try:
            self._socket.send(BackMsg(rerun_script=state).SerializeToString())
            while not self._receive(self._socket.recv(_TIMEOUT_SECONDS)):
                pass
        except (TimeoutError, ConnectionClosed) as error:
            raise BrokerError(f"page {self._path or 'now'!r}: its run did not end ({type(error).__name__})") from None
        self.stats.runs.append(time.monotonic() - began)

    def watch(self, until: float) -> None:
        """Refresh the fragments that are due, until this time of the monotonic clock."""
        due = {name: time.monotonic() + every for name, every in self._timers.items()}
        while due:
            name = min(due, key=due.__getitem__)
            if due[name] > until:
                break
            time.sleep(max(0.0, due[name] - time.monotonic()))
            self.run(name)
            due[name] = max(due[name] + self._timers.get(name, _TIMEOUT_SECONDS), time.monotonic())
        time.sleep(max(0.0, until - time.monotonic()))

    def _receive(self, data: Any) -> bool:
        """Process one message. Returns whether it ends the run."""
        message = ForwardMsg.FromString(data)
        self.stats.received += len(data)
        kind = message.WhichOneof("type")
        if message.metadata.cacheable:
            self._known[message.hash] = None
        if kind == "navigation":
            self._hash = message.navigation.page_script_hash
        elif kind == "auto_rerun":
            self._timers[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "delta" and message.delta.new_element.WhichOneof("type") == "exception":
            raise BrokerError(f"page {self._path or 'now'!r} fails: {message.delta.new_element.exception.message}")
        elif kind == "page_not_found":
            raise BrokerError(f"page {self._path!r} does not exist")
        return kind == "script_finished" and message.script_finished in {
            ForwardMsg.FINISHED_SUCCESSFULLY,
            ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
        }


def watch_together(base: str, viewers: int, seconds: float) -> list[ViewerStats]:
    """Viewers on the first page, one thread each, that start one after the other within the first 5 s.

    Raises:
        BrokerError: the page failed for one of them.
    """
    problems: list[BrokerError] = []
    seen: list[ViewerStats] = []
    until = time.monotonic() + seconds

    def one(number: int) -> None:
        time.sleep(number * 5.0 / viewers)
        try:
            with Viewer(base) as viewer:
                viewer.watch(until)
                seen.append(viewer.stats)
        except BrokerError as error:
            problems.append(error)

    threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(viewers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with suppress(IndexError):
        raise problems[0]
    return seen
