import pytest

from ackscope.errors import ConfigError
from exporter.exposition.encode import render
from exporter.exposition.live.reloads import collect
from exporter.runtime.reloader import Reloader
from tests.unit.exporter.made import NOW, SetClock


class Fake:
    """A settings file given by the test, and an apply function that records its argument."""

    def __init__(self):
        self.file, self.applied, self.clock = "settings", [], SetClock()
        self.reloads = Reloader(self.read, self.apply, self.clock)

    def read(self):
        """Return the settings of the file, or raise its error."""
        if isinstance(self.file, Exception):
            raise self.file
        return self.file

    def apply(self, settings):
        """Record the settings if they are valid."""
        if settings == "unfit":
            raise ConfigError("ca_file: gone")
        self.applied.append(settings)
        return "clusters unchanged"

    def metrics(self):
        """Return the metrics as Prometheus sees them."""
        return render(collect(self.reloads.status))


@pytest.fixture
def fake():
    """A minute after the start."""
    fake = Fake()
    fake.clock.mono += 60
    return fake


def test_a_good_file_is_applied(fake):
    """The line says what was done."""
    assert (True, "reloaded: clusters unchanged") == fake.reloads.reload()
    assert ["settings"] == fake.applied
    assert 'ackscope_config_reloads_total{result="success"} 1\n' in fake.metrics()
    assert f"ackscope_config_last_reload_success_timestamp_seconds {int(NOW.wall + 60)}\n" in fake.metrics()


@pytest.mark.parametrize("wrong", [ConfigError("x.yml: pol: unknown key, amqp://u:hush@host"), "unfit"])
def test_a_wrong_file_leaves_the_settings_before(fake, wrong, caplog):
    """Its line is in the log and in the answer, without a password; the time is that of the settings in force."""
    fake.file = wrong
    ok, line = fake.reloads.reload()

    assert not ok
    assert line.startswith("not reloaded, keeping the current settings: ")
    assert "configuration not reloaded" in caplog.text
    assert "hush" not in caplog.text
    assert "hush" not in line
    assert [] == fake.applied
    assert "ackscope_config_last_reload_successful 0\n" in fake.metrics()
    assert 'ackscope_config_reloads_total{result="failure"} 1\n' in fake.metrics()
    assert f"ackscope_config_last_reload_success_timestamp_seconds {int(NOW.wall)}\n" in fake.metrics()


def test_a_fault_of_ours_ends_nothing(fake, caplog):
    """It is reported as an internal error, with its traceback in the log."""
    fake.file = ZeroDivisionError("a defect")
    reported = fake.reloads.reload()

    assert (False, "reload failed halfway because of an ackscope bug; see the log and restart the exporter") == reported
    assert "ZeroDivisionError: a defect" in caplog.text
    assert "ackscope_config_last_reload_successful 0\n" in fake.metrics()


def test_a_file_that_is_repaired_is_applied(fake):
    """The metric is well again."""
    fake.file = ConfigError("wrong")
    fake.reloads.reload()
    fake.file = "settings"
    fake.reloads.reload()

    assert "ackscope_config_last_reload_successful 1\n" in fake.metrics()


def test_the_start_is_a_success_and_no_reload(fake):
    """Both results have a series from the start."""
    assert "ackscope_config_last_reload_successful 1\n" in fake.metrics()
    assert 'ackscope_config_reloads_total{result="success"} 0\n' in fake.metrics()
    assert 'ackscope_config_reloads_total{result="failure"} 0\n' in fake.metrics()


def test_who_is_stopping_reloads_no_more(fake):
    """Otherwise a new part would start that nobody stops."""
    fake.reloads.close(1)

    assert (False, "not reloaded: the exporter is stopping") == fake.reloads.reload()
    assert [] == fake.applied


def test_a_change_of_discovered_clusters_is_no_reload(fake, caplog):
    """What cannot be applied is one line in the log, and is said to be not applied."""

    def unusable():
        raise ConfigError("ca_file: gone, amqp://u:hush@host")

    assert fake.reloads.reapply(lambda: "clusters new or moved: shop")
    assert not fake.reloads.reapply(unusable)
    assert not fake.reloads.reapply(lambda: 1 / 0)
    fake.reloads.close(1)
    assert not fake.reloads.reapply(lambda: "late")
    assert (True, 0, 0) == (fake.reloads.status.successful, fake.reloads.status.successes, fake.reloads.status.failures)
    assert "clusters not changed" in caplog.text
    assert "hush" not in caplog.text
