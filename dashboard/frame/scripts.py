"""Scripts of the dashboard; the content policy of the server allows them by their hashes."""

from pathlib import Path


def _script(file: str) -> str:
    return f"<script>{Path(__file__).with_name(file).read_text()}</script>"


FOCUS_SEARCH = _script("focus_search.js")
"""Puts the cursor into the text of the search, for which Streamlit has no option."""
TABLE_LINKS = _script("table_links.js")
"""Links of an HTML table open without loading Streamlit again, and a refresh leaves the focus where it was."""
COPY_COMMANDS = _script("copy_commands.js")
"""The buttons next to commands put them into the clipboard."""
ALL = (FOCUS_SEARCH, TABLE_LINKS, COPY_COMMANDS)
