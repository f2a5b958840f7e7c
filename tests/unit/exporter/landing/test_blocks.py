from dataclasses import asdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.records import MessageRecord, Outcome
from ackscope.tables import ACK_BURSTS, LANDING, POLL_SAMPLES, PROBE_MESSAGES
from exporter.landing.blocks import Block, BlockKey, arrow_schema, arrow_table, join, record_blocks, row_blocks
from tests.unit.exporter.made import WALL, burst, message


def dicts(blocks):
    """What a reader of the files sees."""
    return [row for block in blocks for row in block.arrow().to_pylist()]


@pytest.mark.parametrize("name", LANDING)
def test_the_schema_is_the_contract(name):
    """Names, order and nullability are the declared ones; times are UTC microseconds."""
    table = LANDING[name]
    schema = arrow_schema(table)

    assert list(table.names) == schema.names
    assert [column.nullable for column in table.columns] == [field.nullable for field in schema]
    assert pa.timestamp("us", tz="UTC") == schema.field(table.time).type
    assert schema == arrow_table(table, [()] * len(table.columns)).schema


SECONDS, DAY = st.floats(0, 100), 1_699_920_000
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
    intended_at=st.integers(0, 86_399_999_999).map(lambda micros: DAY + micros / 1_000_000),
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
    seen = dicts(record_blocks(PROBE_MESSAGES, "shop", records))
    for row, record in zip(seen, records, strict=True):
        assert abs(row.pop("intended_at").timestamp() - record.intended_at) < 2e-6
    rest = [name for name in PROBE_MESSAGES.names if name != "intended_at"]

    assert [{name: asdict(record)[name] for name in rest} for record in records] == seen


def test_a_burst_is_a_row():
    """The first burst of a channel has no interval, which is null."""
    row = dicts(record_blocks(ACK_BURSTS, "shop", [burst(interval=None)]))[0]

    assert {name: value for name, value in asdict(burst(interval=None)).items() if name != "at"} == {
        name: value for name, value in row.items() if name != "at"
    }
    assert WALL == row["at"].timestamp()


def test_each_row_goes_by_its_own_date():
    """A batch across midnight goes into two dates."""
    midnight = 1_700_006_400.0
    moments = (midnight - 0.001, midnight)
    blocks = record_blocks(PROBE_MESSAGES, "shop", [message(intended_at=moment) for moment in moments])

    assert ["2023-11-14", "2023-11-15"] == [block.key.date for block in blocks]


def test_a_row_is_of_the_moment_that_is_given():
    """Its time comes first, and is not among its values."""
    (block,) = row_blocks(POLL_SAMPLES, "shop", WALL, [("nodes", True, 0.1, 0.0, 3, 0, False, None)])

    assert ("poll_samples/cluster=shop/date=2023-11-14", 1) == (block.key.folder, block.rows)
    assert [(WALL, "nodes")] == [(row["at"].timestamp(), row["family"]) for row in dicts([block])]
    assert [] == row_blocks(POLL_SAMPLES, "shop", WALL, [])


def test_a_missing_value_that_must_be_there_is_refused():
    """The error comes before writing, so other rows can still be written."""
    block = row_blocks(POLL_SAMPLES, "shop", WALL, [(None, True, 0.1, 0.0, 3, 0, False, None)])[0]

    with pytest.raises(pa.ArrowInvalid, match="column family has nulls"):
        block.arrow()


KEY = BlockKey(ACK_BURSTS, "shop", "2023-11-14")


def numbered(*numbers):
    """Return bursts that differ by their number of frames."""
    return record_blocks(ACK_BURSTS, "shop", [burst(frames=number) for number in numbers])[0]


def test_the_oldest_rows_are_the_first():
    """Rows can be cut off before and after the columns are made; they are older than later rows."""
    made, lazy = numbered(1, 2, 3), numbered(4, 5, 6)
    waiting = Block(KEY, 3, None, made.arrow())
    cut = [waiting.without_oldest(1), lazy.without_oldest(2)]

    assert [2, 3, 6] == [row["frames"] for row in dicts(cut)]
    assert [2, 1] == [block.rows for block in cut]
    assert [(True, waiting.number), (False, lazy.number)] == [(block.retried, block.number) for block in cut]


def test_columns_are_made_once():
    """After that the source objects are released."""
    requested = []

    def columns():
        requested.append(True)
        return [(value,) for value in (0, "p", "s", "quorum", "/", "n", "r", 1, 0, 1, None, 0.0)]

    block = Block(KEY, 1, columns)
    first = block.arrow()

    assert first is block.arrow()
    assert [True] == requested


def test_blocks_of_a_key_are_one_table():
    """In the order in which they came."""
    assert [1, 2, 3] == join([numbered(1, 2), numbered(3)])["frames"].to_pylist()
