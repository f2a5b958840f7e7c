import signal

from bench.bench import INTERRUPTED, Bench, run_all


def test_sigterm_ends_what_a_benchmark_started_and_the_rest_of_the_row(capsys):
    """The running benchmark is stopped, the next one is not run, and the previous handler is restored."""
    seen = []

    def measure(_):
        try:
            signal.raise_signal(signal.SIGTERM)
            seen.append("went on")
        finally:
            seen.append("stopped")
        return {}

    ended = Bench("ended", "is ended", measure, lambda _: [])
    after = Bench("after", "comes after", lambda _: {"ran": seen.append("ran")}, lambda _: [])
    before = signal.getsignal(signal.SIGTERM)

    assert run_all((ended, after), []) == INTERRUPTED

    assert seen == ["stopped"]
    assert signal.getsignal(signal.SIGTERM) is before
    assert "ended before it was done" in capsys.readouterr().err


def test_a_benchmark_that_lacks_a_part_does_not_keep_the_others_from_running(capsys):
    """Each prints its table."""
    benches = [Bench(name, f"shows {name}", lambda _: {}, lambda _: ["the table"]) for name in ("one", "two")]

    assert run_all(benches, []) == 0

    assert capsys.readouterr().out.count("the table") == 2
