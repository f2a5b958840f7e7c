import pytest

from bench.diagnosis.faults import Row
from bench.diagnosis.mixtures import Mixture, chosen, goals, judge, lines, possible_pairs
from lab.faults import FAULTS


def row(fault, seconds=12.0, others=(), **fields):
    """Return the result of one fault."""
    return Row(broker="4.3.6", nodes=1, fault=fault, seconds=seconds, once=True, others=list(others), **fields)


def mixture(seconds=(3.0, 9.0), **fields):
    """Return a pair that was named."""
    return Mixture(
        broker="4.3.6", faults=["no-consumer", "channel-leak"], seconds=list(seconds), once=[True, None], **fields
    )


@pytest.mark.parametrize("broker", ["3.10", "4.3"])
def test_pairs_are_random_repeatable_and_can_be_held_together(broker):
    """No pair twice, none that disturbs the whole broker, at most one loop, never one subject or rule."""
    pairs = chosen(broker, 40, 7)

    assert 40 == len({frozenset(spec.name for spec in pair) for pair in pairs})
    assert pairs == chosen(broker, 40, 7) != chosen(broker, 40, 8)
    for first, second in pairs:
        assert (False, False, False) == (first.alone, second.alone, first.apart and second.apart)
        assert first.rule != second.rule
        assert "" == first.subject.name or first.subject != second.subject
        assert {1} == {first.nodes, second.nodes}


def test_faults_of_one_subject_do_not_meet():
    """One could be the consequence of the other."""
    assert [] == possible_pairs([FAULTS["pub-no-confirms"], FAULTS["pub-transient-in-durable"]])
    assert [] == possible_pairs([FAULTS["channel-limit-reached"], FAULTS["connection-limit-reached"]])
    assert 1 == len(possible_pairs([FAULTS["no-consumer"], FAULTS["channel-churn"]]))


@pytest.mark.parametrize("loop", ["channel-churn", "bad-ack-loop", "connection-churn"])
def test_loops_of_channels_and_connections_do_not_meet(loop):
    """The counters of the cluster count them together."""
    for name in ("queue-renamed", "reconnects-after-bad-ack"):
        assert [] == possible_pairs([FAULTS[name], FAULTS[loop]])


def test_information_and_documented_consequences_are_not_extra():
    """A limit of queues explains churn of channels."""
    others = [
        "info slow-disk node a", "warning channel-churn connection b", "critical memory-alarm node a",
        "warning no-consumer queue other",
    ]  # fmt: skip
    pair = (FAULTS["queue-limit-reached"], FAULTS["no-consumer"])
    found = judge([row("queue-limit-reached", others=others), row("no-consumer", seconds=None, others=others)], pair)

    assert (["critical memory-alarm node a"], False, "") == (found.extra, found.both, found.failed)


def test_a_pair_that_was_not_injected_does_not_count():
    """It is neither a success nor a failure of the diagnosis."""
    missed, worst = goals(
        [
            mixture(),
            mixture(seconds=(3.0, None), extra=["warning a x", "critical a x", "warning b x"]),
            mixture(failed="refused"),
        ]
    )

    assert (0.5, 2.0) == (missed.seen, worst.seen)
    assert not missed.met
    assert not worst.met


def test_the_table_fits_a_terminal_and_names_the_seed():
    """Two lines a pair, in 80 columns for the longest names."""
    name = max(FAULTS, key=len)
    document = {
        "seed": 7,
        "rows": [
            {
                "broker": "3.10.8", "faults": [name, name], "seconds": [1.0, None], "once": [True, None],
                "extra": ["warning x queue y"], "failed": "", "both": False,
            }
        ],
        "goals": [],
    }  # fmt: skip
    text = lines(document)

    assert max(len(line) for line in text[:4]) <= 80
    assert "seed 7: both named in 0 of 1 pairs" in text
    assert any(line.startswith("also said, ") for line in text)
