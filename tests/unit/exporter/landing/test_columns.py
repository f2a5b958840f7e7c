import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.tables import Kind
from ackscope.tables.arrow import ARROW_TYPES
from exporter.landing.columns import column

VALUES = {
    Kind.STRING: st.text(st.characters(exclude_categories=("Cs",))),
    Kind.INT: st.integers(-(2**63), 2**63 - 1),
    Kind.FLOAT: st.floats(allow_nan=False),
    Kind.BOOL: st.booleans(),
    Kind.TIME: st.integers(0, 4 * 10**15),
}


@pytest.mark.parametrize("kind", Kind)
@given(data=st.data())
def test_arrays_are_those_of_arrow(kind, data):
    """Values and nulls are equal for any length, and the memory layout is valid."""
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=40))
    made = column(kind, values)
    made.validate(full=True)

    assert pa.array(values, type=ARROW_TYPES[kind]) == made
    assert values.count(None) == made.null_count


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Kind.INT, "5"), (Kind.INT, 5.5), (Kind.INT, 2**63), (Kind.STRING, 5), (Kind.FLOAT, "x"), (Kind.TIME, "now")],
    ids=str,
)
def test_values_of_another_kind_are_refused(kind, value):
    """A value of a wrong type is not converted to a number."""
    with pytest.raises((TypeError, OverflowError, AttributeError)):
        column(kind, [value])


def test_nothing_large_is_imported_to_write_a_file(tmp_path):
    """The exporter's memory is needed for queues."""
    script = (
        "import sys; from pathlib import Path\n"
        "from exporter.landing.blocks import row_blocks\n"
        "from exporter.landing.files import LandingFiles\n"
        "from ackscope.tables import POLL_SAMPLES\n"
        "block = row_blocks(POLL_SAMPLES, 'shop', 0.0, [('nodes', True, 0.1, None, 3, 0, False, None)])[0]\n"
        f"LandingFiles(Path({str(tmp_path)!r})).write(block.key.folder, block.arrow(), 0.0)\n"
        "print('pandas' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "False\n" == done.stdout
    assert 1 == len(list(tmp_path.rglob("*.parquet")))
