import os
import threading

import pytest

from probes.pipe_writer import PipeWriter


@pytest.fixture
def pipe():
    """A pipe: its reading and its writing end."""
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        try:
            os.close(end)
        except OSError:
            continue  # the test closed it


def test_lines_arrive_whole_and_in_order(pipe):
    """Also long ones, which a pipe takes in pieces."""
    reading, writing = pipe
    lines = [bytes([65 + index]) * 100_000 + b"\n" for index in range(5)]
    outlet = PipeWriter(writing, broken=lambda: None)
    for line in lines:
        outlet.put(line)
    received = b""
    while len(received) < sum(map(len, lines)):
        received += os.read(reading, 65536)
    outlet.close(timeout=5.0)

    assert b"".join(lines) == received


def test_a_reader_that_does_not_read_stops_nothing(pipe, caplog):
    """Handing over never blocks; what does not fit is dropped, with one log line."""
    reading, writing = pipe
    ended = threading.Event()
    outlet = PipeWriter(writing, broken=ended.set)
    # This is more than a pipe holds, so the thread is blocked once it has taken it.
    outlet.put(b"x" * 10_000_000)
    while not outlet._lines.empty():
        os.sched_yield()
    for _ in range(1000):
        outlet.put(b"x")

    assert [record.msg["event"] for record in caplog.records] == [
        "reader of probe records is too slow, dropping records"
    ]
    # The thread must be done with this pipe before its number is another's.
    os.close(reading)
    assert ended.wait(5.0)


def test_a_reader_that_is_gone_is_noticed(pipe):
    """The child detects that its parent is gone."""
    reading, writing = pipe
    os.close(reading)
    gone = threading.Event()
    PipeWriter(writing, broken=gone.set).put(b"line\n")

    assert gone.wait(5.0)


def test_lines_are_gathered_and_none_is_lost_at_the_end(pipe):
    """Many small lines become few writes; closing does not wait for more."""
    reading, writing = pipe
    outlet = PipeWriter(writing, broken=lambda: None)
    for number in range(50):
        outlet.put(b"%d\n" % number)
    outlet.close(timeout=5.0)
    os.close(writing)

    received = b""
    while piece := os.read(reading, 65536):
        received += piece
    assert b"".join(b"%d\n" % number for number in range(50)) == received
