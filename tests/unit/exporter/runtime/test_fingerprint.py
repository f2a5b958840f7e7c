import pytest

from exporter.runtime.fingerprint import fingerprint
from exporter.settings import ExporterSettings


@pytest.fixture
def file(tmp_path):
    """A file with a password."""
    file = tmp_path / "password"
    file.write_text("hush\n")
    return file


def taken(file, **changes):
    """The fingerprint of a cluster's settings."""
    management = {"url": "http://host", "username": "u", "password_file": file, **changes}
    settings = ExporterSettings.model_validate({"clusters": {"shop": {"management": management}}})
    return fingerprint(settings.clusters["shop"], settings.poll)


def test_the_same_settings_have_the_same_fingerprint(file):
    """Whenever it is taken."""
    assert taken(file) == taken(file)


@pytest.mark.parametrize("changes", [{"url": "http://other"}, {"username": "v"}, {"timeout": 3}])
def test_another_key_is_another_fingerprint(file, changes):
    """Whichever it is."""
    assert taken(file) != taken(file, **changes)


def test_another_password_in_the_same_file_is_another_fingerprint(file):
    """That is how passwords are changed."""
    before = taken(file)
    file.write_text("hush2\n")

    assert before != taken(file)


def test_a_fingerprint_does_not_report_the_password(file):
    """It may stand in a log."""
    assert "hush" not in repr(taken(file))


def test_a_file_that_goes_is_another_fingerprint(file):
    """And no error: what needs the file says so itself."""
    settings = ExporterSettings.model_validate(
        {"clusters": {"shop": {"management": {"url": "http://host", "password_file": file}}}}
    )
    before = fingerprint(settings)
    file.unlink()

    assert before != fingerprint(settings)
