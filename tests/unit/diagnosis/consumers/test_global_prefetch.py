from diagnosis.window import Window
from tests.unit.diagnosis.consumers.own import found, gaps, only
from tests.unit.diagnosis.pictures import channel, connection, look, snapshot, told


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
    """Once a virtual host, as information."""
    finding = only(shared("3.10.8"))

    assert ("global-prefetch", "info", "/") == (finding.rule, finding.severity, finding.subject.name)
    assert "'billing'" in finding.summary
    assert "global=false" in told(finding)


def test_a_limit_of_each_consumer_is_fine():
    """That is what should be."""
    assert [] == found(shared("3.10.8", limit=0))


def test_later_brokers_do_not_tell():
    """And nothing that anybody does changes it."""
    verdict = shared("4.0.5", limit=None)

    assert [] == found(verdict)
    assert [True] == [gap.permanent for gap in gaps(verdict, "global-prefetch")]
