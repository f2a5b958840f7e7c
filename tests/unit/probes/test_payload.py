from hypothesis import given
from hypothesis import strategies as st

from probes.payload import PayloadMark, PayloadWriter, read

RUN = "0123456789abcdef"


@given(epoch=st.integers(0, 2**32 - 1), seq=st.integers(0, 2**63), size=st.integers(32, 5000))
def test_a_body_tells_what_was_written(epoch, seq, size):
    """Run, epoch and sequence number come back, and the size is what was asked for."""
    body = PayloadWriter(RUN, epoch, size).write(seq)

    assert PayloadMark(RUN, epoch, seq) == read(body)
    assert size == len(body)


@given(st.binary(max_size=100))
def test_foreign_bodies_are_not_ours(body):
    """Messages of others in the queue are not taken for messages of a probe."""
    assert read(body) is None
