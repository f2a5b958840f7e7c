import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.errors import DataError
from ackscope.records import (
    AckBurst,
    Batching,
    BatchingKind,
    MessageRecord,
    Outcome,
    ProbeOutcome,
    ProbeState,
    ProbeStep,
    Quantiles,
    StepRecord,
)
from probes.ipc import ProbeTarget, RecordBatch, decode, decode_targets, encode_batch, encode_targets
from probes.settings import AmqpSettings, ProbesSettings

STREAM = {"probe": "confirm", "stream": "quorum", "queue_type": "quorum", "vhost": "/", "node": "", "run_id": "0" * 16}
numbers = st.floats(0, 1e9)
maybe = st.none() | numbers
messages = st.builds(
    MessageRecord,
    **{name: st.just(value) for name, value in STREAM.items()},
    epoch=st.integers(1, 9),
    seq=st.integers(-9, 2**40),
    delivery_mode=st.just(2),
    payload_bytes=st.just(64),
    intended_at=numbers,
    send_delay=numbers,
    outcome=st.sampled_from(Outcome),
    confirm=maybe,
    response=maybe,
    multiple=st.none() | st.booleans(),
    group=st.none() | st.integers(1, 999),
)
bursts = st.builds(
    AckBurst,
    **{name: st.just(value) for name, value in STREAM.items()},
    at=numbers,
    frames=st.integers(1, 9),
    multiple_frames=st.integers(0, 9),
    messages=st.integers(0, 999),
    interval=maybe,
    span=numbers,
)
steps = st.builds(
    StepRecord,
    probe=st.just("rtt"),
    stream=st.just("rtt"),
    vhost=st.just("/"),
    node=st.just("rabbit@one"),
    run_id=st.just("0" * 16),
    at=numbers,
    step=st.just("declare"),
    seconds=maybe,
    ok=st.booleans(),
    reason=st.none() | st.text(max_size=20),
)
quantiles = st.builds(Quantiles, count=st.integers(0, 9), p50=maybe, max=maybe)
outcomes = st.builds(
    ProbeOutcome,
    probe=st.just("confirm"),
    stream=st.just("quorum"),
    queue_type=st.just("quorum"),
    vhost=st.text(max_size=5),
    queue=st.just("q"),
    node=st.just(""),
    at=numbers,
    state=st.sampled_from(ProbeState),
    reason=st.none() | st.text(max_size=20),
    outcomes=st.just({"acked": 3, "nacked": 0}),
    confirm=quantiles,
    burst_messages=quantiles,
    missing=st.none() | st.integers(0, 9),
    steps=st.dictionaries(st.sampled_from(["tcp", "tls"]), st.builds(ProbeStep, seconds=quantiles)),
    batching=st.none() | st.builds(Batching, kind=st.sampled_from(BatchingKind), interval=maybe),
)


@given(
    messages=st.lists(messages, max_size=5),
    bursts=st.lists(bursts, max_size=5),
    steps=st.lists(steps, max_size=3),
    outcomes=st.lists(outcomes, max_size=3),
)
def test_what_goes_in_comes_out(messages, bursts, steps, outcomes):
    """Every record survives the pipe whole, and every line is one line."""
    sent = RecordBatch("shop", messages, bursts, steps, outcomes)
    lines = encode_batch(sent)
    received = [decode(line) for line in lines]

    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert {"shop"} >= {batch.cluster for batch in received}
    assert messages == [record for batch in received for record in batch.messages]
    assert bursts == [record for batch in received for record in batch.bursts]
    assert steps == [record for batch in received for record in batch.steps]
    assert outcomes == [record for batch in received for record in batch.outcomes]


@given(st.binary(max_size=80))
def test_a_line_of_rubbish_is_one_clear_error(line):
    """This holds for any input of a broken pipe."""
    with pytest.raises(DataError):
        decode(line)


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "letters", "cluster": "shop", "rows": []},
        {"kind": "messages", "rows": []},
        {"kind": "messages", "cluster": "shop", "rows": [{"probe": "confirm"}]},
        {"kind": "outcomes", "cluster": "shop", "rows": [{"state": "sleeping"}]},
    ],
)
def test_a_line_of_another_shape_is_refused(document):
    """An unknown kind or a missing field is not guessed at."""
    with pytest.raises(DataError):
        decode(orjson.dumps(document))


def target(**amqp):
    """A target with these AMQP settings."""
    return ProbeTarget("shop", AmqpSettings(**amqp).servers(), ProbesSettings(prefix="my.probes"))


def test_a_target_arrives_with_its_credentials_resolved():
    """User and password given beside the address end up in it, whatever characters they have."""
    sent = target(url="amqp://host:5673/v%2Fhost", username="us/er", password="p@ss:w/rd%")

    (received,) = decode_targets(encode_targets([sent]))
    address = received.servers[""].address

    assert ("us/er", "p@ss:w/rd%", "host", 5673, "v/host") == (
        address.username,
        address.password,
        address.host,
        address.port,
        address.vhost,
    )
    assert sent.probes == received.probes


def test_nodes_arrive_with_their_credentials_resolved():
    """Credentials of the cluster apply if a node's address has none."""
    sent = target(url="amqp://lb/v", username="u", password="p@ss", nodes={"rabbit@a": "amqp://a:1"})

    (received,) = decode_targets(encode_targets([sent]))
    address = received.servers["rabbit@a"].address

    assert ("u", "p@ss", "a", 1, "v") == (
        address.username,
        address.password,
        address.host,
        address.port,
        address.vhost,
    )


def test_the_document_has_the_agreed_shape():
    """Cluster, every server with what it takes to connect, and the settings of the probes."""
    document = target(url="amqps://u:p@[::1]", ca_file="/ca.pem", verify=False).to_json()

    assert document["cluster"] == "shop"
    assert document["servers"] == {
        "": {
            "url": "amqps://u:p@[::1]:5671/%2F",
            "ca_file": "/ca.pem",
            "verify": False,
            "stream_port": None,
            "password_file": None,
        }
    }
    assert document["probes"]["prefix"] == "my.probes"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"secret-word\n",
        b'{"targets": [{"cluster": "shop", "amqp": {"url": "amqp://u:secret-word@:9/"}, "probes": {}}]}',
        b'{"targets": [{"cluster": "shop", "amqp": {"url": "amqp://u:secret-word@h/", "port": 1}, "probes": {}}]}',
        b'{"targets": [{"cluster": "shop", "amqp": {"url": ["secret-word"]}, "probes": {}}]}',
        b'{"targets": [{"amqp": {"url": "amqp://u:secret-word@h/"}}]}',
        b'{"targets": [{"cluster": "shop", "amqp": {"url": "amqp://h", "nodes": ["secret-word"]}, "probes": {}}]}',
        b'{"targets": [{"cluster": "s", "amqp": {"url": "amqp://h", "nodes": {"n": "secret-word"}}, "probes": {}}]}',
    ],
)
def test_bad_targets_are_refused_without_their_secrets(line):
    """The message names the place and holds no value."""
    with pytest.raises(DataError) as caught:
        decode_targets(line)

    assert "secret-word" not in str(caught.value)
    assert "secret-word" not in repr(caught.value.__cause__)


def test_settings_do_not_print_the_password():
    """The password is not in a log line of the whole settings."""
    assert "hunter2" not in repr(target(url="amqp://u:hunter2@h", password="hunter2"))


def test_a_new_password_in_the_file_is_used_without_a_new_process(tmp_path):
    """The file is read at each login; while it holds nothing, the password of the start is used."""
    file = tmp_path / "password"
    file.write_text("first\n")
    sent = target(
        url="amqp://u@lb/v", password_file=file, nodes={"rabbit@a": "amqp://a", "rabbit@b": "amqp://me:own@b"}
    )
    (received,) = decode_targets(encode_targets([sent]))

    def passwords():
        return {node: server.password() for node, server in received.servers.items()}

    assert {"": "first", "rabbit@a": "first", "rabbit@b": "own"} == passwords()
    file.write_text("second\n")
    assert {"": "second", "rabbit@a": "second", "rabbit@b": "own"} == passwords()
    file.unlink()
    assert {"": "first", "rabbit@a": "first", "rabbit@b": "own"} == passwords()
