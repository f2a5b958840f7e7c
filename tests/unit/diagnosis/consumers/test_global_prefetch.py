from diagnosis.window import Window
from tests.unit.diagnosis.consumers.results import found, inconclusive, only
from tests.unit.diagnosis.pictures import CHANNEL, channel, connection, look, snapshot


def shared(version, limit=10):
    """A channel with a shared prefetch."""
    window = Window.empty("shop")
    for seconds in (0.0, 5.0):
        window = window.add(
            snapshot(
                seconds,
                version=version,
                channels=(channel(global_prefetch_count=limit),),
                connections=(connection(),),
            )
        )
    return look(window)


def test_a_shared_prefetch_is_listed():
    """One finding per virtual host, as information."""
    finding = only(shared("3.10.8"))

    assert ("global-prefetch", "info", "/") == (finding.rule, finding.severity, finding.subject.name)
    assert ["billing"] == finding.facts["clients"]
    assert [{"name": CHANNEL, "prefetch": 10}] == finding.facts["channels"]


def test_a_prefetch_of_each_consumer_is_no_finding():
    """That is how it should be."""
    assert [] == found(shared("3.10.8", limit=0))


def test_from_4_0_on_it_is_inconclusive():
    """Those brokers do not report it, and nothing changes that."""
    result = shared("4.0.5", limit=None)

    assert [] == found(result)
    assert [("not_reported", True)] == [
        (each.reason, each.permanent) for each in inconclusive(result, "global-prefetch")
    ]
