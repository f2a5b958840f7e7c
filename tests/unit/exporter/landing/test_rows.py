from dataclasses import asdict
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.records import MessageRecord, Outcome
from ackscope.snapshot import Part, Queue
from ackscope.tables import ACK_BURSTS, LANDING, PROBE_MESSAGES, QUEUE_SAMPLES
from exporter.landing.rows import arrow_schema, arrow_table, burst_rows, message_rows, queue_rows
from tests.unit.exporter.made import NOW, WALL, burst, message, part, small

PREFIXES = ("ackscope.probe.",)


def dicts(table, rows):
    """What a reader of the file sees."""
    return arrow_table(table, rows).to_pylist()


@pytest.mark.parametrize("name", LANDING)
def test_the_schema_is_the_contract(name):
    """Names, order and nullability are the declared ones; times are UTC microseconds."""
    table = LANDING[name]
    schema = arrow_schema(table)

    assert list(table.names) == schema.names
    assert [column.nullable for column in table.columns] == [field.nullable for field in schema]
    assert pa.timestamp("us", tz="UTC") == schema.field(table.time).type
    assert schema == arrow_table(table, []).schema


SECONDS = st.floats(0, 100)
RECORDS = st.builds(
    MessageRecord,
    probe=st.just("confirm"),
    queue_type=st.sampled_from(["classic", "quorum"]),
    vhost=st.text(st.characters(exclude_categories=("Cs",)), max_size=9),
    node=st.sampled_from(["", "rabbit@one"]),
    run_id=st.just("r1"),
    epoch=st.integers(1, 2**31),
    seq=st.integers(1, 2**62),
    delivery_mode=st.sampled_from([1, 2]),
    payload_bytes=st.integers(32, 10**6),
    intended_at=st.integers(0, 4 * 10**15).map(lambda micros: micros / 1_000_000),
    send_delay=SECONDS,
    outcome=st.sampled_from(list(Outcome)),
    confirm=st.none() | SECONDS,
    response=st.none() | SECONDS,
    multiple=st.none() | st.booleans(),
    group=st.none() | st.integers(1, 10**6),
    delivery=st.none() | SECONDS,
    deliveries=st.none() | st.integers(0, 99),
    redelivered=st.none() | st.booleans(),
    out_of_order=st.none() | st.booleans(),
)


@given(st.lists(RECORDS, min_size=1, max_size=5))
def test_a_record_comes_back_as_it_went(records):
    """Absent stays absent, and every value is found under its own name."""
    seen = dicts(PROBE_MESSAGES, message_rows("shop", records))
    for row, record in zip(seen, records, strict=True):
        assert abs(row.pop("intended_at").timestamp() - record.intended_at) < 2e-6
    rest = [name for name in PROBE_MESSAGES.names if name != "intended_at"]

    assert [{name: asdict(record)[name] for name in rest} for record in records] == seen


def test_a_burst_is_a_row():
    """The first burst of a channel has no interval, which is null."""
    row = dicts(ACK_BURSTS, burst_rows("shop", [burst(interval=None)]))[0]

    assert {name: value for name, value in asdict(burst(interval=None)).items() if name != "at"} == {
        name: value for name, value in row.items() if name != "at"
    }
    assert WALL == row["at"].timestamp()


def test_each_row_goes_by_its_own_date():
    """A batch over midnight is two days' worth."""
    midnight = 1_700_006_400.0
    rows = message_rows("shop", [message(intended_at=midnight - 0.001), message(intended_at=midnight)])

    assert ["2023-11-14", "2023-11-15"] == [row.date for row in rows]


def test_a_queue_is_a_row_of_what_it_said():
    """The time is that of the reading, not of now; what the queue did not say is null."""
    at = Instant(wall=WALL - 30, mono=NOW.mono - 30)
    queue = Queue(
        vhost="/",
        name="orders",
        type="quorum",
        messages_ready=4,
        stats=MessageStats(publish=9, deliver=2, deliver_get=3, redeliver=1),
    )
    row = dicts(QUEUE_SAMPLES, queue_rows(small(queues=Part(value=(queue,), at=at)), PREFIXES))[0]

    expected = {
        "at": datetime.fromtimestamp(WALL - 30, UTC),
        "vhost": "/",
        "queue": "orders",
        "queue_type": "quorum",
        "messages_ready": 4,
        "messages_unacked": None,
        "consumers": None,
        "publish": 9,
        "deliver": 3,
        "ack": None,
        "redeliver": 1,
    }

    assert expected == row


def test_queues_of_the_probes_are_left_out():
    """What we cause ourselves is no load of the user's."""
    both = (Queue(vhost="/", name="ackscope.probe.confirm.classic"), Queue(vhost="/", name="ackscope.probes"))
    rows = queue_rows(small(queues=part(both)), PREFIXES)

    assert ["ackscope.probes"] == [row.values[2] for row in rows]


def test_queues_that_were_never_read_are_no_rows():
    """No reading, no sample."""
    assert [] == queue_rows(small(queues=Part(error="403")), PREFIXES)
