"""Clients of the faults that speak other protocols than AMQP: streams and MQTT.

The libraries are needed for nothing else, so they are loaded when the first client is made.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

import orjson

from ackscope.address import Address
from ackscope.errors import MissingPart, Unreachable
from lab.control import Control
from lab.node import Extra

CLIENTS = Extra(
    plugins=("rabbitmq_stream", "rabbitmq_stream_management", "rabbitmq_mqtt"),
    config=(
        "stream.listeners.tcp.1 = 127.0.0.1:{port}\n"
        "stream.advertised_host = 127.0.0.1\n"
        "mqtt.listeners.tcp.1 = 127.0.0.1:{port}\n"
    ),
)
"""What the nodes of a lab must be started with for these clients."""

_TICK = 0.1
_TIMEOUT = 10.0
_FRAME = 1024 * 1024
_HEARTBEAT = 60
_SUBSCRIPTION = 0
_AGAIN = 7
"""Seconds until an MQTT client connects again. Much briefer connections are in no list of the broker."""


def listener(ask: Callable[[str, str], Any], protocol: str, control: Control | None = None) -> int:
    """Return the port of a protocol, such as `stream` or `mqtt`.

    Args:
        ask: requests a path of the management API by its method.
        protocol: name of the protocol in the overview.
        control: the lab, whose tools list the listeners where the overview does not: on a broker without statistics.

    Raises:
        MissingPart: the broker does not listen for it.
    """
    listed = ask("GET", "/api/overview").get("listeners")
    if listed is None and control is not None:
        words = ("--quiet", "listeners", "--formatter", "json")
        listed = orjson.loads(control.tool(0, "rabbitmq-diagnostics", *words))["listeners"]
    port = next((each["port"] for each in listed or () if each["protocol"] == protocol), None)
    if port is None:
        raise MissingPart(f"the broker does not listen for {protocol}; enable its plugin, such as rabbitmq_{protocol}")
    return int(port)


def _library(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingPart(
            f"this fault needs a client: scripts/setup.sh installs it, or pip install {package}"
        ) from None


class StreamConnections:
    """Connections over the stream protocol, all served by one thread.

    Args:
        address: the broker; its host, credentials and virtual host.
        port: of the stream protocol.

    Raises:
        MissingPart: rstream is not installed.
    """

    def __init__(self, address: Address, port: int) -> None:
        self._client, self._schema = (_library(f"rstream.{name}", "rstream") for name in ("client", "schema"))
        self._address, self._port = address, port
        self._loop = asyncio.new_event_loop()
        self._open: list[Any] = []
        # A loop holds its tasks weakly.
        self._tasks: list[Any] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="streams", daemon=True)
        self._thread.start()

    def connect(self, name: str) -> Any:
        """Open a connection with this name, and return it.

        Raises:
            Unreachable: no connection.
        """
        client = self._client.Client(
            self._address.host,
            self._port,
            frame_max=_FRAME,
            heartbeat=_HEARTBEAT,
            connection_name=name,
            connection_closed_handler=lambda _: None,
        )
        self._do(self._start(client))
        self._open.append(client)
        return client

    def disconnect(self, client: Any) -> None:
        """Close a connection."""
        self._open.remove(client)
        self._do(client.close())

    def read(
        self, client: Any, stream: str, *, credit: int = 2, rate: float = 0.0, most: int | None = None
    ) -> Callable[[], int]:
        """Read a stream from its begin; returns a function that tells how many messages were received.

        Args:
            client: the connection.
            stream: name of the stream.
            credit: chunks to ask for at first; one more is asked for after each.
            rate: messages per second; 0 is as fast as possible.
            most: messages after which no more are asked for.
        """
        received = [0]

        async def take(frame: Any) -> None:
            received[0] += frame.num_records
            if rate:
                await asyncio.sleep(frame.num_records / rate)
            if most is None or received[0] < most:
                await client.credit(_SUBSCRIPTION, 1)

        async def start() -> None:
            client.add_handler(self._schema.Deliver, take, name=str(_SUBSCRIPTION))
            await client.run_queue_listener_task(subscriber_id=_SUBSCRIPTION, handler=take)
            await client.subscribe(stream, _SUBSCRIPTION, initial_credit=credit)

        self._do(start())
        return lambda: received[0]

    def write(self, client: Any, stream: str, rate: float, size: int = 100) -> Callable[[], int]:
        """Publish messages of `size` bytes at a rate per second; returns a function that tells how many were sent.

        Their publishing ids begin with 0, so what a second publisher of the stream sends is discarded at first.
        """
        sent = [0]

        async def publish() -> None:
            began = time.monotonic()
            while client in self._open:
                due = int((time.monotonic() - began) * rate) - sent[0]
                messages = [
                    self._schema.Message(publishing_id=sent[0] + each, filter_value=None, data=b"x" * size)
                    for each in range(due)
                ]
                if messages:
                    frame = self._schema.Publish(publisher_id=0, messages=messages)
                    await client.send_publish_frame(frame, 1)
                    sent[0] += due
                await asyncio.sleep(_TICK)

        self._do(client.declare_publisher(stream, f"{stream}.publisher", 0))
        self._tasks.append(asyncio.run_coroutine_threadsafe(publish(), self._loop))
        return lambda: sent[0]

    def close(self) -> None:
        """Close all connections, and end the thread; the broker gets no farewell, which takes a second for each."""
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_TIMEOUT)
        self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in self._open:
            if client._conn is not None:  # noqa: SLF001  its own `close` waits for the tasks that have ended
                await client._conn.close()  # noqa: SLF001

    async def _start(self, client: Any) -> None:
        await client.start()
        await client.authenticate(
            vhost=self._address.vhost, username=self._address.username, password=self._address.password
        )

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT)
        except (OSError, TimeoutError) as error:
            raise Unreachable(
                f"{self._address.host}:{self._port}: no stream connection ({type(error).__name__})"
            ) from None


class MqttClient:
    """A connection over MQTT 3.1.1 with a thread of its own.

    Args:
        address: the broker; its host and credentials.
        port: of MQTT.
        client_id: the name of the client.
        lasting: whether its session stays when it is away.
        handle: called with each message; the message is acknowledged if it returns True.
        again: whether it connects again when its connection ends.

    Raises:
        MissingPart: paho-mqtt is not installed.
        Unreachable: no connection.
    """

    def __init__(
        self,
        address: Address,
        port: int,
        client_id: str,
        *,
        lasting: bool = False,
        handle: Callable[[Any], bool] = lambda _message: True,
        again: bool = False,
    ) -> None:
        library = _library("paho.mqtt.client", "paho-mqtt")
        self._client = library.Client(
            library.CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=not lasting,
            manual_ack=True,
            reconnect_on_failure=again,
        )
        self._client.username_pw_set(address.username, address.password)
        self._client.reconnect_delay_set(min_delay=_AGAIN, max_delay=_AGAIN)
        self._client.on_message = self._take
        self._handle = handle
        self.received = 0
        try:
            self._client.connect(address.host, port, keepalive=_HEARTBEAT)
        except OSError as error:
            raise Unreachable(f"{address.host}:{port}: no MQTT connection ({type(error).__name__})") from None
        self._client.loop_start()

    def subscribe(self, topic: str) -> None:
        """Subscribe with quality of service 1."""
        self._client.subscribe(topic, qos=1)

    def publish(self, topic: str, body: bytes = b"lab") -> None:
        """Publish with quality of service 1."""
        self._client.publish(topic, body, qos=1)

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()

    def _take(self, client: Any, _data: Any, message: Any) -> None:
        self.received += 1
        if self._handle(message):
            client.ack(message.mid, message.qos)
