import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.broker.json_stream import is_list, iter_items

TRICKY = [
    {"name": "a},{b", "arguments": {}},
    {"name": 'c"},{"', "arguments": {"x": [{"y": 1}, {"z": 2}, {"y": [{}, {}]}]}},
    {"name": "d\\", "arguments": {"x": "[{},{}]"}},
    {},
    {},
]


@pytest.mark.parametrize("chunk_bytes", range(1, 120))
def test_cuts_are_made_between_objects_only(chunk_bytes):
    """Whatever strings and lists inside an object look like."""
    assert TRICKY == list(iter_items(orjson.dumps(TRICKY), chunk_bytes))


@given(
    st.lists(
        st.recursive(
            st.dictionaries(st.text('},{"[]\\', max_size=6), st.integers(0, 9), max_size=3),
            lambda inner: st.dictionaries(st.text("},{", max_size=3), st.lists(inner, max_size=3), max_size=3),
            max_leaves=8,
        ),
        max_size=12,
    ),
    st.integers(1, 40),
)
def test_any_list_comes_out_as_it_went_in(listed, chunk_bytes):
    """In order, without duplicates or losses."""
    assert listed == list(iter_items(bytearray(orjson.dumps(listed)), chunk_bytes))


@pytest.mark.parametrize("body", [b"[]", b" [ ]", b"[1, null, [2]]", b'[{"a":1}\n,{"b":2}]'])
def test_any_list_format_is_read(body):
    """A list without a position to cut at is one chunk."""
    assert orjson.loads(body) == list(iter_items(body, 1))


@pytest.mark.parametrize("body", [b"[", b'[{"a":1},{"b"', b'[{"a":1},{"b":2}', b'[{"a":1}]]', b'[{"a":1},]', b"[1 2]"])
def test_a_truncated_list_is_an_error(body):
    """Detected at the end at the latest."""
    with pytest.raises(ValueError, match=r"."):
        list(iter_items(body, 4))


@pytest.mark.parametrize(("body", "expected"), [(b"[]", True), (b"\n [", True), (b"{}", False), (b"", False)])
def test_a_list_is_recognised_by_its_start(body, expected):
    """So that anything else is an error before the first item."""
    assert expected == is_list(body)
    if not expected:
        with pytest.raises(ValueError, match="not a JSON list"):
            list(iter_items(body))
