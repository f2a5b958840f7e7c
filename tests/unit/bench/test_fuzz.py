"""Fuzzing in short, and the faults that it found before: `python -m bench.fuzz.broker --minutes 60` does it in long."""

import argparse
import importlib
import json
from random import Random

import orjson
import pytest

from bench.fuzz import driver, recordings
from bench.fuzz.__main__ import BENCHES
from bench.fuzz.cases import CaseRunner, FuzzCase, loaded, saved
from bench.fuzz.mutator import Mutator

SEED = 27
CASES = {
    "broker": 80,
    "prometheus": 60,
    "sessions": 50,
    "bundles": 150,
    "landing": 100,
    "configuration": 120,
    "requests": 400,
}
"""Together they take about a minute on an idle machine."""

FOUND = sorted(recordings.CRASHERS.glob("*/*.json"))


def target(name):
    """A new target."""
    return importlib.import_module(f"bench.fuzz.{name}").TARGET()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_damaged_input_shows_no_fault(name):
    """No exception but the product's own, no traceback in an answer, no promise broken."""
    with CaseRunner(target(name), SEED) as runner:
        faults = [fault for number in range(CASES[name]) if (fault := runner.run(number)) is not None]

        assert runner.inputs >= CASES[name]
    # How long a case takes is for the benchmark: this machine may be busy.
    assert [] == [f"case {it.number}: {it.what}\n{it.trace}" for it in faults if it.where != "slow"]


@pytest.mark.parametrize("name", CASES)
def test_undamaged_input_passes(name):
    """Otherwise damage would say nothing."""
    with CaseRunner(target(name), SEED) as runner:
        fault = runner.checked(0, FuzzCase(runner.made(0).base))

    assert fault is None, fault.trace


@pytest.mark.parametrize("name", sorted({path.parent.name for path in FOUND}))
def test_what_was_found_before_is_mended(name):
    """Each file names what it broke."""
    with CaseRunner(target(name), SEED) as runner:
        shown = [
            (path.name, fault.what, fault.trace)
            for path in FOUND
            if path.parent.name == name and (fault := runner.checked(0, loaded(path))) is not None
        ]

    assert [] == shown


def test_each_found_file_says_what_it_broke():
    """What it broke, for the person who sees it fail again."""
    assert FOUND
    assert all(json.loads(path.read_text())["broke"] for path in FOUND)


def test_a_case_is_made_again_from_seed_and_number():
    """By another target, in another order."""
    for name in CASES:
        with CaseRunner(target(name), SEED) as one, CaseRunner(target(name), SEED) as other:
            first = [one.made(number) for number in (3, 4)]

            assert [other.made(number) for number in (4, 3)] == first[::-1]
            assert first[0] != first[1]


def test_the_mutator_damages_some_and_keeps_some():
    """Most documents are JSON still, so that damage gets behind the parser; some are not."""
    document = orjson.loads((recordings.FIXTURES / "4.3.6" / "queues.json").read_bytes())
    made = [Mutator(Random(number)).document(orjson.loads(orjson.dumps(document))) for number in range(300)]
    valid = 0
    for content in made:
        try:
            orjson.loads(content)
        except orjson.JSONDecodeError:
            continue
        valid += 1

    assert 200 < valid < 300
    assert len(set(made)) > 250


def test_a_saved_case_is_the_same_case(tmp_path):
    """Of any bytes."""
    case = FuzzCase("4.3.6", {"/api/x": bytes(range(256))}, variety=7)
    saved(case, "it broke", tmp_path / "a" / "case.json")

    assert case == loaded(tmp_path / "a" / "case.json")


def test_every_kind_of_fault_is_noticed_and_named(monkeypatch, tmp_path):
    """An exception, one that was logged, a broken promise, a dead process and one that does not end."""
    monkeypatch.setattr(driver, "HANG_SECONDS", 3.0)
    name = "tests.unit.bench.fuzz_targets"
    args = argparse.Namespace(cases=8, minutes=None, seed=7, first=0, save=tmp_path)

    document = driver._measure(name, args, "inputs", 8)

    found = {fault["number"]: fault["what"] for fault in document["faults"]}
    assert {
        1: "ZeroDivisionError: a defect",
        2: "KeyError: 'caught by a boundary'",
        3: "PromiseBroken: not as promised",
        4: "the process ended: SIGSEGV",
        6: "no end after 3 s",
    } == found
    assert "fuzz_targets.py" in next(fault["trace"] for fault in document["faults"] if fault["number"] == 6)
    assert (8, 5) == (document["cases"], document["goals"][0]["seen"])
    assert 3 == len(list((tmp_path / name).iterdir()))
    assert any("NOT met: faults" in line for line in driver._lines(document))


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.name)
def test_the_short_form_is_one_that_the_command_takes(bench):
    """Otherwise a run of all benchmarks would stop at the first."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    bench.add_arguments(parser)

    assert parser.parse_args(list(bench.short))
    assert bench.room == "fuzz"
    assert bench.name in CASES
