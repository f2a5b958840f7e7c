"""The benchmarks of the exporter as commands."""

import argparse

import pytest

from bench.exporter.__main__ import BENCHES


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.name)
def test_the_short_form_is_one_that_the_command_takes(bench):
    """Otherwise a run of all benchmarks would stop at the first."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    bench.add_arguments(parser)

    assert parser.parse_args(list(bench.short))
    assert bench.room == "exporter"
