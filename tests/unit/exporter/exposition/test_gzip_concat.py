import gzip
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.exposition.gzip_concat import compress_prefix, finish_member

PIECES = st.lists(st.binary(max_size=3000), max_size=5)


@given(first=PIECES, second=PIECES)
def test_the_two_parts_are_one_file(first, second):
    """This holds for any content, including an empty part."""
    packed = b"".join(finish_member(compress_prefix(first), second))

    assert b"".join([*first, *second]) == gzip.decompress(packed)


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 70_000])
def test_ends_of_any_size_are_read(size):
    """Small ones are sent as they are, large ones compressed."""
    first, end = b"queues " * 5000, b"ages " * (size // 5) + b"." * (size % 5)
    chunks = finish_member(compress_prefix([first]), [end[: size // 2], end[size // 2 :]])

    assert first + end == gzip.decompress(b"".join(chunks))
    assert (size <= 16 * 1024) == (len(chunks[2]) == size + 5)


def test_one_first_part_serves_many_files():
    """The first part can be reused."""
    packed = compress_prefix([b"queues " * 5000])

    assert [b"queues " * 5000 + end for end in (b"one", b"two")] == [
        gzip.decompress(b"".join(finish_member(packed, [end]))) for end in (b"one", b"two")
    ]


def test_the_reference_program_reads_it():
    """Gzip itself finds one whole file, with the right checksum and length, and nothing behind it."""
    packed = b"".join(finish_member(compress_prefix([b"queues " * 100_000]), [b"the end\n"]))
    tested = subprocess.run(["gzip", "-tv"], input=packed, capture_output=True, check=False)
    read = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=False)

    assert 0 == tested.returncode, tested.stderr
    assert (b"queues " * 100_000 + b"the end\n", b"") == (read.stdout, read.stderr)
