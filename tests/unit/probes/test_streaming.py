"""The parts of the streaming probe that need no broker: frames, offsets, confirms, and the way to a node."""

import asyncio
import struct
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.errors import MissingPart, Refused, Unreachable, Unsupported
from probes.catalogue import PROBES, protocol_of
from probes.ipc import ProbeTarget
from probes.queues import QueueSpec
from probes.settings import AmqpSettings, ProbesSettings
from probes.streaming import codec, publisher
from probes.streaming.connection import Member, StreamProtocolConnection
from probes.streaming.publisher import READS_NOTHING, StreamProtocolPublisher
from probes.streaming.reach import TRIES, reach
from probes.streaming.reader import StreamPosition, subscribe

SERVER = AmqpSettings(url="amqp://user:hunter2@127.0.0.1:1", stream_port=2).server().streams
RSTREAM = codec.library()
SCHEMA = RSTREAM.schema
QUEUE = QueueSpec("s", "stream", 60)


class Socket:
    """A socket that keeps what is sent, as frames, and answers by a function."""

    def __init__(self, answer=lambda frame: ()):
        self.sent, self.answer, self.link, self.open = [], answer, None, True

    def start(self, received, ended):
        """Nothing is read."""

    def send(self, data):
        """Everything is sent at time 1; answers arrive at time 2."""
        self.sent.append(data)
        key = int.from_bytes(data[4:6], "big")
        for frame in self.answer(key, data):
            self.arrives(frame)
        return 1.0

    def arrives(self, *frames):
        """Let frames of the broker arrive at time 2."""
        data = b"".join(map(encoded, frames))
        self.link._received(data, 2.0)

    def close(self):
        """Close it."""
        self.open = False


def encoded(frame, version=1):
    """A frame of the broker; a response has the highest bit of its key set."""
    data = bytearray(RSTREAM.encoding.encode_frame(frame, version))
    if type(frame).__name__.endswith("Response"):
        data[4] |= 0x80
    return bytes(data)


def number_of(data):
    """The number of a request."""
    return int.from_bytes(data[8:12], "big")


def connected(scenario, answer=lambda key, data: ()):
    """Run a test with a connection beside such a socket."""

    async def run():
        socket = Socket(answer)
        link = socket.link = StreamProtocolConnection(SERVER, socket, RSTREAM)
        try:
            return await scenario(link, socket)
        finally:
            link.cut()

    return asyncio.run(run())


def welcoming(key, data, **changes):
    """Answers of a broker that lets everybody in; `changes` are response codes by the class of the response."""
    number, text = number_of(data), [SCHEMA.Property("product", "RabbitMQ"), SCHEMA.Property("version", "4.3.6")]
    address = [SCHEMA.Property("advertised_host", "one"), SCHEMA.Property("advertised_port", "7")]
    return {
        17: lambda: [SCHEMA.PeerPropertiesResponse(number, 1, text)],
        18: lambda: [SCHEMA.SaslHandshakeResponse(number, 1, changes.get("mechanisms", ["PLAIN"]))],
        19: lambda: [
            SCHEMA.SaslAuthenticateResponse(number, changes.get("login", 1)),
            SCHEMA.Tune(changes.get("frame_max", 0), changes.get("heartbeat", 60)),
        ],
        21: lambda: [SCHEMA.OpenResponse(number, changes.get("vhost", 1), address)],
    }.get(key, list)()


def test_it_runs_only_where_it_is_asked_for():
    """Its library is an extra, which may be missing."""
    assert "stream" == protocol_of("streaming")
    assert "streaming" not in ProbesSettings().enabled
    assert PROBES["streaming"].sends


def test_without_the_library_the_message_names_the_extra(monkeypatch):
    """One line that says how to get it."""
    monkeypatch.setitem(sys.modules, "rstream.schema", None)

    with pytest.raises(MissingPart, match=r"pip install 'ackscope\[streams\]'"):
        codec.library()


@pytest.mark.parametrize(
    ("url", "port", "expected"),
    [("amqp://h", None, 5552), ("amqps://h", None, 5551), ("amqp://h:5672", 7000, 7000), ("amqps://h", 7001, 7001)],
)
def test_the_port_has_a_default_that_depends_on_tls(url, port, expected):
    """It is on the host of the AMQP address, and the child process gets it."""
    settings = AmqpSettings(url=url, stream_port=port)
    target = ProbeTarget.from_json(ProbeTarget("shop", settings.servers(), ProbesSettings()).to_json())

    assert ("h", expected) == (settings.server().streams.address.host, settings.server().streams.address.port)
    assert expected == target.servers[""].streams.address.port


def test_the_port_of_streams_holds_for_every_node():
    """Nodes differ in their address only."""
    node = AmqpSettings(url="amqp://h", nodes={"rabbit@a": "amqp://a"}, stream_port=9).servers()["rabbit@a"]

    assert ("a", 9) == (node.streams.address.host, node.streams.address.port)


def test_a_name_is_announced_with_the_number_of_its_bytes():
    """A virtual host such as "büro" would break the frame otherwise."""
    data = RSTREAM.encoding.encode_frame(SCHEMA.Open(1, codec.Name("büro")))

    assert "büro" == RSTREAM.encoding.decode_frame(data[4:]).virtual_host


@pytest.mark.parametrize("size", [32, 64, 255, 256, 1_000_000])
def test_a_message_is_one_of_amqp_1_0(size):
    """So that clients of other protocols can read the stream."""
    body = b"x" * size
    message = RSTREAM.amqp.amqp_decoder(codec.message_head(RSTREAM, size) + body)

    assert body == message.body


def test_frames_are_cut_wherever_the_bytes_are_split():
    """A frame counts when it is whole; several may arrive at once."""
    confirms = [SCHEMA.PublishConfirm(0, [1, 2]), SCHEMA.PublishConfirm(0, [3])]
    data = b"".join(map(encoded, confirms))
    decoder = codec.FrameDecoder(RSTREAM)

    assert confirms == [frame for byte in data for frame in decoder.feed(bytes([byte]))]
    assert confirms == list(codec.FrameDecoder(RSTREAM).feed(data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"AMQP\0\0\x09\x01", "it sends a frame of 1095586128 bytes"),
        (b"\0\0\0\x02\0\0", "it sends a frame of 2 bytes"),
        (b"\0\0\0\x04\x7f\xff\0\x01", "it sends a frame that cannot be read"),
        (b"\0\0\0\x04\0\x03\0\x09", "it sends a frame that cannot be read"),
        (b"\0\0\0\x05\0\x03\0\x01\0", "it sends a frame that cannot be read: it ends too early"),
        (b"\0\0\0\x09\0\x03\0\x01\0\xff\xff\xff\xff", "it sends a frame that cannot be read: it ends too early"),
        (b"\0\0\0\x0a\0\x03\0\x01\0\0\0\0\0!", "it sends a frame that cannot be read: PublishConfirm is too long"),
    ],
)
def test_what_is_no_frame_ends_with_a_reason(data, reason):
    """Another protocol, an unknown frame, another version, a frame that ends too early or late, and a false count."""
    with pytest.raises(codec.NotStreams, match=reason):
        list(codec.FrameDecoder(RSTREAM).feed(data))


@given(st.integers(1, 30), st.booleans(), st.binary(max_size=120))
def test_any_content_is_a_frame_or_an_error(key, response, content):
    """A damaged frame ends the connection with one line, and in no other way."""
    data = struct.pack(">IHH", 4 + len(content), key | (0x8000 if response else 0), 1) + content
    try:
        (frame,) = codec.FrameDecoder(RSTREAM).feed(data)
    except codec.NotStreams:
        return

    assert type(frame).__module__ == "rstream.schema"


@given(st.integers(0, 6), st.binary(max_size=60))
def test_any_chunk_is_read_or_an_error(entries, data):
    """The same for the messages in a chunk."""
    made = SCHEMA.Deliver(0, 80, 0, entries, entries, 0, 1, 0, zlib.crc32(data), len(data), 0, 0, data)
    try:
        found = list(codec.messages(made))
    except codec.NotStreams:
        return

    assert len(found) <= entries


def test_a_refusal_may_end_after_its_code():
    """So answers RabbitMQ if a virtual host does not exist; a response that grants something is whole."""
    refused, granted = (struct.pack(">IHHIH", 10, 0x8015, 1, 7, code) for code in (12, 1))
    (frame,) = codec.FrameDecoder(RSTREAM).feed(refused)

    assert (7, 12, []) == (frame.correlation_id, frame.response_code, frame.properties)
    with pytest.raises(codec.NotStreams, match="it ends too early"):
        list(codec.FrameDecoder(RSTREAM).feed(granted))


def test_a_login_tells_product_and_address():
    """The heartbeat is ours where the broker would wait longer; a frame has a limit, also where it has none."""

    async def scenario(link, socket):
        await link._log_in("ackscope-probe streaming")
        tune = RSTREAM.encoding.decode_frame(next(data for data in socket.sent if data[4:6] == b"\0\x14")[4:])
        return link.product, link.advertised, link.frame_max, tune.heartbeat, b"".join(socket.sent)

    product, advertised, frame_max, heartbeat, sent = connected(scenario, welcoming)

    assert ("RabbitMQ 4.3.6", Member("one", 7), 1_048_576, 15) == (product, advertised, frame_max, heartbeat)
    assert b"ackscope-probe streaming" in sent


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"login": 8}, "127.0.0.1:2: login refused for user 'user'"),
        ({"login": 11}, "127.0.0.1:2: login refused for user 'user'"),
        ({"vhost": 12}, "127.0.0.1:2: user 'user' may not use virtual host '/'"),
        ({"vhost": 16}, "refuses opening virtual host '/' .AccessRefused, code 16."),
        ({"vhost": 99}, "refuses opening virtual host '/' .code 99."),
        ({"mechanisms": ["EXTERNAL"]}, "offers no login with a password .only EXTERNAL."),
    ],
)
def test_a_refusal_is_one_line_without_the_password(changes, reason):
    """It says what to check."""

    async def scenario(link, _):
        with pytest.raises(Refused, match=reason) as error:
            await link._log_in("test")
        return str(error.value)

    assert "hunter2" not in connected(scenario, lambda key, data: welcoming(key, data, **changes))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (SCHEMA.Close(9, 1, "shutdown"), "the broker closed the connection (shutdown)"),
        (SCHEMA.MetadataUpdate(SCHEMA.MetadataInfo(6, "s")), "stream 's' was deleted, or its leader or replica moved"),
    ],
)
def test_what_the_broker_ends_has_a_reason(frame, reason):
    """A closed connection, and a stream that is not there any more; the close is answered."""

    async def scenario(link, socket):
        link.end_with_stream("s")
        socket.arrives(frame)
        return link.alive, str(link.closed.result()), [int.from_bytes(data[4:6], "big") for data in socket.sent]

    alive, why, keys = connected(scenario)

    assert (False, True) == (alive, reason in why)
    assert keys == ([0x16] if isinstance(frame, SCHEMA.Close) else [])


def test_another_protocol_at_the_port_is_named():
    """Before the login with a hint; nothing is read after it."""

    async def scenario(link, socket):
        link._received(b"HTTP/1.1 400 Bad Request\r\n", 2.0)
        return str(link.closed.result()), socket.open

    why, open_ = connected(scenario)

    assert "127.0.0.1:2: what answers does not speak the stream protocol (it sends a frame of " in why
    assert why.endswith("is it the port of the stream protocol (usually 5552)?")
    assert not open_


def test_a_connection_without_a_heartbeat_is_dead():
    """After two intervals in which nothing arrived."""

    async def scenario(link, socket):
        link._received_at -= 31
        link._beat()
        return str(link.closed.result())

    assert "127.0.0.1:2: no heartbeat for 30 s; the connection is dead" == connected(scenario)


def of_members(number, leader=1, code=1):
    """A response with the nodes of a stream."""
    brokers = [SCHEMA.Broker(each, f"h{each}", 5552) for each in (1, 2, 3)]
    return SCHEMA.MetadataResponse(number, brokers, [SCHEMA.StreamMetadata("s", code, leader, [2, 3, 9])])


def test_a_new_stream_is_asked_for_until_it_has_a_leader():
    """A replica whose node is not listed is left out."""
    leaders = iter((65_535, 7, 1))

    async def scenario(link, _):
        return await link.members("s")

    members = connected(scenario, lambda _, data: [of_members(number_of(data), next(leaders))])

    assert Member("h1", 5552) == members.leader
    assert (Member("h2", 5552), Member("h3", 5552)) == members.replicas


@pytest.mark.parametrize(("code", "kind"), [(2, Unreachable), (6, Unreachable), (16, Refused)])
def test_a_stream_without_a_leader_is_an_error_in_the_end(code, kind):
    """What cannot change is reported at once."""

    async def scenario(link, _):
        with pytest.raises(kind, match="'s'"):
            await link.members("s", within=0.15)

    connected(scenario, lambda _, data: [of_members(number_of(data), code=code)])


def publishing(scenario, answer=lambda key, data: ()):
    """Run a test with a publisher whose declaration succeeds."""

    def answered(key, data):
        return [SCHEMA.DeclarePublisherResponse(number_of(data), 1)] if key == 1 else answer(key, data)

    async def run(link, socket):
        source = StreamProtocolPublisher(link, "s")
        settled = []
        await source.confirms(lambda tag, at, **how: settled.append((tag, at, how["nacked"])), print)
        source.prepare("s", 4)
        try:
            return await scenario(source, socket, settled)
        finally:
            source._timer.cancel()

    return connected(run, answered)


def test_confirms_and_errors_settle_messages_by_their_number():
    """At the time of arrival; an error of the broker is a nack."""

    async def scenario(source, socket, settled):
        sent = [source.publish(b"body") for _ in range(3)]
        socket.arrives(SCHEMA.PublishConfirm(0, [1, 2]), SCHEMA.PublishError(0, [SCHEMA.PublishingError(3, 2)]))
        return sent, settled, socket.sent[-1]

    sent, settled, last = publishing(scenario)

    assert [1.0, 1.0, 1.0] == sent
    assert [(1, 2.0, False), (2, 2.0, False), (3, 2.0, True)] == settled
    assert b"body" == last[-4:]


def test_a_publisher_leads_to_its_stream_only():
    """Another key would be ignored in silence; declaring and touching are not needed."""

    async def scenario(source, socket, settled):
        before = len(socket.sent)
        await source.declare(QUEUE)
        await source.touch(QUEUE)
        with pytest.raises(ValueError, match="publishes to stream 's'"):
            source.prepare("other", 4)
        assert before == len(socket.sent)

    publishing(scenario)


def test_a_message_that_fits_into_no_frame_is_refused():
    """The limit is the broker's, and named."""

    async def scenario(source, socket, settled):
        source._link.frame_max = 1000
        with pytest.raises(Refused, match=r"a message of 990 bytes does not fit .* at most 1000 bytes"):
            source.prepare("s", 990)

    publishing(scenario)


def test_a_broker_that_reads_nothing_blocks(monkeypatch):
    """Without confirms it is asked something; no response is a block, and the response ends it."""
    monkeypatch.setattr(publisher, "BLOCKED_AFTER", 0.02)

    async def scenario(source, socket, settled):
        heard = []
        source.on_blocked(heard.append, lambda: heard.append("unblocked"))
        source.publish(b"body")
        await until(lambda: source.blocked)
        (asked,) = [data for data in socket.sent if data[4:6] == b"\0\x0f"]
        socket.arrives(of_members(number_of(asked)))
        await until(lambda: not source.blocked)
        return heard

    assert [READS_NOTHING, "unblocked"] == publishing(scenario)


def test_a_broker_that_confirms_nothing_but_answers_is_not_blocked(monkeypatch):
    """It stalls: messages become undecided."""
    monkeypatch.setattr(publisher, "BLOCKED_AFTER", 0.02)
    asked = []

    def answer(key, data):
        if key != 15:
            return ()
        asked.append(data)
        return [of_members(number_of(data))]

    async def scenario(source, socket, settled):
        source.publish(b"body")
        await until(lambda: len(asked) > 2)
        return source.blocked

    assert publishing(scenario, answer) is False


async def until(condition):
    """Wait for what timers of the publisher do."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  as above
            await asyncio.sleep(0.005)


def test_a_position_tells_what_was_read_before():
    """A subscription may begin in the middle of a chunk; lower offsets may also be those of a new stream."""
    position = StreamPosition()

    assert 0 == position.take(100, 10)
    assert 0 == position.take(110, 5)
    assert 3 == position.take(112, 10)
    assert 122 == position.next
    assert 4 == position.take(0, 4)
    assert 4 == position.next


def chunk(first, *bodies, entries=None, batch=b""):
    """A chunk of messages as the broker delivers it."""
    data = batch + b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    count = len(bodies) if entries is None else entries
    return SCHEMA.Deliver(0, 80, 0, count, count, 0, 1, first, zlib.crc32(data), len(data), 0, 0, data)


def test_batches_of_other_clients_are_skipped_and_counted():
    """They may be compressed; the offsets after them must be right."""
    batch = b"\x90" + (3).to_bytes(2, "big") + (99).to_bytes(4, "big") + (5).to_bytes(4, "big") + b"12345"

    assert [(3, b"a"), (4, b"b")] == list(codec.messages(chunk(0, b"a", b"b", entries=3, batch=batch)))


def test_a_damaged_chunk_ends_the_connection():
    """A wrong checksum, or fewer messages than announced; nothing is taken for missing in silence."""
    damaged = bytearray(encoded(chunk(0, b"body")))
    damaged[-1] ^= 1
    with pytest.raises(codec.NotStreams, match="cannot be read: Invalid checksum"):
        list(codec.FrameDecoder(RSTREAM).feed(bytes(damaged)))

    async def scenario(link, socket):
        await subscribe(link, "s", StreamPosition(), 4, 10, lambda body, at, before: None)
        socket.arrives(chunk(0, b"body", entries=2))
        return str(link.closed.result())

    def answer(key, data):
        return [SCHEMA.SubscribeResponse(number_of(data), 1)] if key == 7 else ()

    assert "it sends a chunk that cannot be read: it ends too early" in connected(scenario, answer)


def test_a_reader_asks_for_a_chunk_more_after_each_and_skips_what_is_not_its_own():
    """It begins at the end of the stream, later where it was, and at the begin if nothing was read before."""
    head, other = codec.message_head(RSTREAM, 4), codec.message_head(RSTREAM, 5)
    position, begins = StreamPosition(), []

    def answer(key, data):
        if key == 7:
            begins.append(data[16:-6])
        return [SCHEMA.SubscribeResponse(number_of(data), 1)] if key == 7 else ()

    async def scenario(link, socket):
        heard = []

        async def read():
            await subscribe(link, "s", position, 4, 10, lambda body, at, before: heard.append((body, at, before)))

        await read()
        await read()
        socket.arrives(chunk(7, head + b"aaaa", other + b"bbbbb", b"of others"))
        await read()
        socket.arrives(chunk(9, head + b"cccc", head + b"dddd"))
        return heard, [data[4:6] for data in socket.sent].count(b"\0\x09")

    heard, credits_ = connected(scenario, answer)

    assert [(b"aaaa", 2.0, False), (b"cccc", 2.0, True), (b"dddd", 2.0, False)] == heard
    assert 2 == credits_
    assert [b"\0\x03", b"\0\x01", b"\0\x04" + (10).to_bytes(8, "big")] == begins


class Node:
    """A connection to a node."""

    def __init__(self, advertised):
        self.advertised, self.closed_ = advertised, False

    async def close(self):
        """Close it."""
        self.closed_ = True


def reaching(wanted, configured, others=None):
    """Try to reach a node; the configured address leads to nodes in this order, the others by their address."""
    opened, turns = [], iter(configured)

    async def connect(server):
        address = Member(server.address.host, server.address.port)
        if address == Member("127.0.0.1", 2):
            found = next(turns)
        else:
            assert server.address.password == "hunter2"
            found = (others or {}).get(address, Unreachable(f"{address}: cannot resolve host name"))
        if isinstance(found, Exception):
            raise found
        opened.append(Node(found))
        return opened[-1]

    return asyncio.run(reach(SERVER, wanted, "leader of stream 's'", connect)), opened


ONE, TWO, THREE = Member("one", 5552), Member("two", 5552), Member("three", 5552)


@pytest.mark.parametrize(
    ("configured", "others", "opened"),
    [
        ([TWO], {}, 1),
        ([None], {}, 1),
        ([ONE], {TWO: TWO}, 2),
        ([ONE, THREE, TWO], {}, 3),
        ([ONE, TWO], {TWO: THREE}, 3),
    ],
)
def test_a_node_is_reached(configured, others, opened):
    """At once, by its advertised address, or by more connections to a load balancer; all others are closed."""
    found, every = reaching([TWO], configured, others)

    assert found.advertised in {TWO, None}
    assert opened == len(every)
    assert [not node.closed_ for node in every] == [node is found for node in every]


def test_a_node_that_cannot_be_reached_is_named():
    """With what the broker advertises, why that fails, and what to set."""
    with pytest.raises(Unreachable) as error:
        reaching([TWO], [ONE] * TRIES)

    assert "127.0.0.1:2: the leader of stream 's' is advertised as two:5552, which cannot be reached" in str(
        error.value
    )
    assert "(two:5552: cannot resolve host name)" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_port_that_nothing_listens_at_is_unsupported():
    """Nothing is wrong with such a broker; the message names the plugin and the setting."""

    async def scenario():
        with pytest.raises(Unsupported, match="enable the plugin rabbitmq_stream, or set its port"):
            await StreamProtocolConnection.open(
                AmqpSettings(url="amqp://127.0.0.1", stream_port=1).server().streams, "t"
            )

    asyncio.run(scenario())
