"""Configuration that is made to do harm, or written by accident: one line that names the key, and no traceback."""

from pathlib import Path

import pytest

from ackscope.errors import ConfigError
from ackscope.settings import load
from exporter.settings import ExporterSettings

SHOP = "clusters: {shop: {management: {url: 'http://u:p@127.0.0.1:1'}}}\n"
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9))
REPEATS = "a repeat of more than 1000"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOMB, "line 6: a5 has more than 200000 values, aliases included"),
        ("poll: &x {a: *x}", "line 1: poll.a contains itself"),
        ("metrics: " + "[" * 3000, "line 1: metrics.0.0 has more than 50 levels"),
        ("poll: " + "{a: " * 2000, "line 1: poll.a.a has more than 50 levels"),
        (SHOP + "poll: {interval: .nan}", "poll.interval: must be a finite number"),
        (SHOP + "landing: {rotate: .inf}", "landing.rotate: must be a finite number"),
        (SHOP + "landing: {max_bytes: .nan}", "landing.max_bytes: must be a finite number"),
        (
            SHOP + r'landing: {directory: "/tmp/a\0b"}',
            "line 2: landing.directory has a NUL or half a character pair in its text",
        ),
        (SHOP + r'listen: "\ud800"', "line 2: listen has a NUL or half a character pair in its text"),
        (
            SHOP + "landing: {directory: /dev/null}",
            "landing.directory: /dev/null is not a directory; give one, or a path that does not exist yet",
        ),
        (
            SHOP + "triage: {file: /dev/full}",
            "triage.file: /dev/full is not a regular file; give one, or a path that does not exist yet",
        ),
        (
            SHOP + "metrics: {include_queues: 'a{1,4294967296}'}",
            (
                f"metrics.include_queues: invalid regular expression 'a{{1,4294967296}}': {REPEATS}; "
                "use '^shop/orders' for example"
            ),
        ),
        (
            "modules: {m: {targets: ['a{9999999999}']}}",
            (
                "modules.m.targets: invalid target 'a{9999999999}': neither host:port nor a regular expression "
                f"({REPEATS})"
            ),
        ),
        (
            SHOP + "diagnosis: {publishers: {silent_queues: ['a{2000}']}}",
            f"diagnosis.publishers.silent_queues: 'a{{2000}}' is not a regular expression ({REPEATS}); correct it",
        ),
        (SHOP + "diagnosis: {early: -1}", "diagnosis.early: must be more than 0"),
        (SHOP + "diagnosis: {queues: {hot_for: -1}}", "diagnosis: queues.hot_for is -1; must be at least 0"),
        (
            SHOP + "poll: {interval: 2001-99-99}",
            "line 2: poll.interval has a value that cannot be read; put it in quotes",
        ),
        (SHOP + "listen: " + "9" * 5000, "line 2: listen has a value that cannot be read; put it in quotes"),
    ],
)
def test_one_line_names_the_key(tmp_path, text, problem):
    """And says what to do."""
    path = tmp_path / "ackscope.yml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(ExporterSettings, path, {})

    assert f"{path}: {problem}" == str(raised.value)


def test_deep_parentheses_are_one_line_too(tmp_path):
    """The library gives up within its own recursion."""
    path = tmp_path / "ackscope.yml"
    path.write_text(SHOP + f"metrics: {{include_queues: '{'(' * 900}'}}")
    with pytest.raises(ConfigError, match=r"metrics\.include_queues: invalid regular expression"):
        load(ExporterSettings, path, {})


def test_a_device_is_no_configuration():
    """It would never end."""
    with pytest.raises(ConfigError) as raised:
        load(ExporterSettings, Path("/dev/zero"), {})

    assert "/dev/zero: longer than 4 MiB; give a configuration file" == str(raised.value)


def test_aliases_are_for_use(tmp_path):
    """A few of them are fine."""
    path = tmp_path / "ackscope.yml"
    path.write_text(SHOP + "poll: &poll {interval: 10s}\n")

    assert 10 == load(ExporterSettings, path, {}).poll.interval
