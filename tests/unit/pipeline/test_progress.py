import io
import sys

from pipeline.progress import NoProgress, progress_bar


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self):
        """Yes."""
        return True


def test_a_terminal_gets_a_bar(monkeypatch):
    """The bar shows done and total work; the total may grow, and the bar is removed at the end."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("backfill", "hours") as progress:
        progress.expect(2)
        progress.expect(1)
        progress.done(3)

        assert "backfill: 100%" in terminal.getvalue()
        assert "3/3" in terminal.getvalue()

    assert "" == terminal.getvalue().rsplit("\r", 1)[-1].strip()


def test_others_get_nothing(monkeypatch):
    """Logs contain no progress bar."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("run", "hours") as progress:
        progress.expect(1)
        progress.done(1)

        assert isinstance(progress, NoProgress)
    assert "" == sys.stderr.getvalue()
