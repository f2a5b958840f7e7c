import gzip
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from exporter.packing import finish, pack

PIECES = st.lists(st.binary(max_size=3000), max_size=5)


@given(first=PIECES, second=PIECES)
def test_the_two_parts_are_one_file(first, second):
    """Whatever they hold, and where one of them holds nothing."""
    packed = b"".join(finish(pack(first), second))

    assert b"".join([*first, *second]) == gzip.decompress(packed)


def test_one_first_part_serves_many_files():
    """Nothing in it is used up."""
    packed = pack([b"queues " * 5000])

    assert [b"queues " * 5000 + end for end in (b"one", b"two")] == [
        gzip.decompress(b"".join(finish(packed, [end]))) for end in (b"one", b"two")
    ]


def test_the_reference_program_reads_it():
    """Gzip itself finds one whole file, with the right checksum and length, and nothing behind it."""
    packed = b"".join(finish(pack([b"queues " * 100_000]), [b"the end\n"]))
    tested = subprocess.run(["gzip", "-tv"], input=packed, capture_output=True, check=False)
    read = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=False)

    assert 0 == tested.returncode, tested.stderr
    assert (b"queues " * 100_000 + b"the end\n", b"") == (read.stdout, read.stderr)
