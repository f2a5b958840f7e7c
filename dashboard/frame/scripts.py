"""Scripts of the frame; the content policy of the server allows them by their hashes."""

from pathlib import Path

FOCUS_SEARCH = f"<script>{Path(__file__).with_name('focus_search.js').read_text()}</script>"
"""Puts the cursor into the text of the search, for which Streamlit has no option."""
