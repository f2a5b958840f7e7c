"""Payloads of real brokers, randomly damaged: nothing crashes, and nothing becomes zero."""

import copy
import re
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackscope.snapshot import version_of
from exporter.broker.families import FAMILIES
from exporter.broker.fields import count, mapping, moment, number, whole
from tests.unit.exporter.broker.server import VERSIONS, fixture
from tests.unit.exporter.broker.test_amqp_sessions import CONSUMING, HOLDER, PUBLISHING
from tests.unit.exporter.broker.test_stream_clients import LISTS


def without_zeros(value):
    """The payload with every zero replaced by 7, so that a decoded zero is an invented one."""
    match value:
        case bool():
            return value
        case int() | float():
            return value or 7
        case list():
            return [without_zeros(item) for item in value]
        case dict():
            return {key: without_zeros(item) for key, item in value.items()}
        case _:
            return value


RICHEST_SHAPE = {
    # The recording with the most fields of a family; for all others it is the sample workload.
    "health": "alarmed",
    "nodes": "one-down",
    **dict.fromkeys(
        ("exchanges", "bindings", "vhosts", "policies", "limits", "links", "features", "auth", "memory"), "linked"
    ),
}
UNRECORDED = {"sessions": {HOLDER: [CONSUMING], "another": [PUBLISHING]}, "streams": LISTS}
"""No recorded workload uses AMQP 1.0 or the stream protocol."""

PAYLOADS = {
    (version, family): without_zeros(
        UNRECORDED[family] if family in UNRECORDED else fixture(version, family, RICHEST_SHAPE.get(family, ""))
    )
    for version in VERSIONS
    for family in FAMILIES
}
WRONG = [None, [], {}, "", "undefined", "unknown", "0", "12", True, False, -1, -0.5, 1e400, 2**70, [0], {"rate": 7}]


def places(value, path=()):
    """Every path into a payload."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


PLACES = {key: list(places(payload)) for key, payload in PAYLOADS.items()}


def broken(payload, path, wrong, *, drop):
    """The payload with one place dropped or replaced; unchanged if an earlier change removed the place."""
    # Of its own: a later change may go into it, and other tests use the same values.
    wrong = copy.deepcopy(wrong)
    if not path:
        return wrong
    parent = payload
    for step in path[:-1]:
        try:
            parent = parent[step]
        except (KeyError, IndexError, TypeError):
            return payload
    try:
        parent[path[-1]] = parent[path[-1]] if drop else wrong
        if drop:
            del parent[path[-1]]
    except (KeyError, IndexError, TypeError):
        pass
    return payload


PASSED_ON = {"arguments", "effective_policy", "definition"}
"""Fields with values that users chose."""


def zeros(value):
    """Number of zeros in the decoded objects; false does not count. Arguments and policies are passed through."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return int(value == 0)
    if isinstance(value, tuple):
        return sum(zeros(item) for item in value)
    if is_dataclass(value):
        names = (field.name for field in fields(value) if field.name not in PASSED_ON)
        return sum(zeros(getattr(value, name)) for name in names)
    if isinstance(value, dict):
        return sum(zeros(item) for item in value.values())
    return 0


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_no_payload_crashes_a_decoder_or_becomes_zero(data):
    """Whatever is dropped or replaced: no exception, no zero, and the untouched rest stays."""
    key = data.draw(st.sampled_from(sorted(PAYLOADS)))
    version, family = key
    payload = copy.deepcopy(PAYLOADS[key])
    for _ in range(data.draw(st.integers(1, 6))):
        path = data.draw(st.sampled_from(PLACES[key]))
        payload = broken(payload, path, data.draw(st.sampled_from(WRONG)), drop=data.draw(st.booleans()))
    version_used = data.draw(st.sampled_from([None, version_of(version), (3, 10), (4, 3)]))

    value, gaps = FAMILIES[family].decode(payload, version_used)

    assert zeros(value) == 0
    assert all(count > 0 for count in gaps.values())


def at(payload, path):
    """The value at a place."""
    for step in path:
        payload = payload[step]
    return payload


ANYTHING = {"arguments", "effective_policy_definition", "definition"}
READ = {key: [path for path in places if not ANYTHING & set(path[:-1]) and path] for key, places in PLACES.items()}


@settings(max_examples=800, deadline=None)
@given(st.data())
def test_a_value_lost_to_a_wrong_type_is_a_gap(data):
    """No value is lost silently."""
    key = data.draw(st.sampled_from(sorted(PAYLOADS)))
    version, family = key
    path = data.draw(st.sampled_from(READ[key]))
    payload = copy.deepcopy(PAYLOADS[key])
    wrong = "wrong" if isinstance(at(payload, path), list | dict) else data.draw(st.sampled_from([[7], {"x": 7}]))
    at(payload, path[:-1])[path[-1]] = wrong
    decode, version_used = FAMILIES[family].decode, version_of(version)

    before, none = decode(PAYLOADS[key], version_used)
    value, gaps = decode(payload, version_used)

    assert not none
    assert value == before or gaps, f"{family} {path}: {at(PAYLOADS[key], path)!r} -> {wrong!r}"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_is_absent_null_or_an_empty_list_is_never_a_zero(data):
    """In any field of any family: the ways in which Erlang sends a missing value."""
    key = data.draw(st.sampled_from(sorted(PAYLOADS)))
    version, family = key
    payload = copy.deepcopy(PAYLOADS[key])
    path = data.draw(st.sampled_from([path for path in PLACES[key] if path]))
    payload = broken(payload, path, data.draw(st.sampled_from([None, []])), drop=data.draw(st.booleans()))

    value, gaps = FAMILIES[family].decode(payload, version_of(version))

    assert zeros(value) == 0
    assert all(count > 0 for count in gaps.values())


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_one_damaged_object_does_not_affect_the_others(data):
    """Each object is decoded separately."""
    version = data.draw(st.sampled_from(VERSIONS))
    family = data.draw(st.sampled_from(["queues", "channels", "consumers", "connections", "exchanges", "vhosts"]))
    payload = copy.deepcopy(fixture(version, family))
    index = data.draw(st.integers(0, len(payload) - 1))
    payload[index] = data.draw(st.sampled_from(WRONG))
    decode = FAMILIES[family].decode

    whole, _ = decode(fixture(version, family), version_of(version))
    value, gaps = decode(payload, version_of(version))

    assert whole[:index] + whole[index + 1 :] == value
    assert sum(gaps.values()) >= 1


@pytest.mark.parametrize("cast", [count, whole, number])
@pytest.mark.parametrize("value", [2**63, 2**80, 1.7e308, float("inf"), float("nan"), -(2**63)])
def test_numbers_that_no_broker_can_have_are_refused(cast, value):
    """They would spoil sums and not fit a column."""
    with pytest.raises(ValueError, match=re.escape(str(value))):
        cast(value)


def test_the_largest_number_is_read():
    """It fits a column of 64 bits."""
    assert 2**63 - 1 == count(2**63 - 1)


@pytest.mark.parametrize("version", ["9" * 5000 + ".1", "4." + "1" * 5000, "4", "", "a.b", None])
def test_a_version_that_is_none_is_unknown(version):
    """However long it is."""
    assert version_of(version) is None


SEVERAL_OF_ONE_NAME = {"consumers", "bindings", "links", "health", "sessions"}
"""Consumers of AMQP 1.0 have no name of their own, bindings are counted, links have several places, and a listener may
have a chain of certificates."""


def doubled(value, depth=2):
    """The payload with every object twice in its list."""
    if isinstance(value, list) and depth:
        return [doubled(item, depth - 1) for item in value for _ in range(2)]
    if isinstance(value, dict):
        return {key: doubled(item, depth) for key, item in value.items()}
    return value


@pytest.mark.parametrize("key", [key for key in PAYLOADS if key[1] not in SEVERAL_OF_ONE_NAME], ids=str)
def test_an_object_that_is_listed_twice_is_there_once(key):
    """Else a series would be on /metrics twice."""
    version, family = key
    decode = FAMILIES[family].decode
    payload = PAYLOADS[key]
    twice = [item for item in payload for _ in range(2)] if isinstance(payload, list) else doubled(payload, 1)

    assert decode(payload, version_of(version))[0] == decode(twice, version_of(version))[0]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01 0:00:00", 0),
        ("2026-11-21T08:12:24.339+00:00", 1_795_248_744.339),
        ("2026-11-21 8:12:24", 1_795_248_744),
        ("9999-12-31 23:59:59", 253_402_300_799),
    ],
)
def test_a_moment_is_seconds_since_1970(text, seconds):
    """As brokers of all versions send it."""
    assert moment(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+14:00",
        "0001-01-01 00:00:00",
        "1969-12-31 23:59:59",
        "9999-12-31T23:59:59-14:00",
        "10000-01-01",
    ],
)
def test_a_moment_that_has_no_date_is_a_gap(text):
    """It could not be shown."""
    with pytest.raises(ValueError, match=r"."):
        moment(text)


@pytest.mark.parametrize(
    "wrapped", [lambda inner: {"a": inner}, lambda inner: {"a": [inner, 1]}], ids=["maps", "lists"]
)
def test_arguments_that_nest_too_deeply_are_a_gap(wrapped):
    """They could not be written as JSON again; those of clients nest a few levels."""
    few = many = {}
    for level in range(900):
        many = wrapped(many)
        few = wrapped(few) if level < 20 else few

    assert few == mapping(few)
    with pytest.raises(ValueError, match=r"^nested too deeply$"):
        mapping(many)
