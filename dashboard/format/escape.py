"""Escaping of foreign text, so that it is shown literally.

Applications choose queue names: they can contain Markdown, HTML, `:emoji:` codes or control characters.
All text from the broker or the exporter passes through here before it reaches anything that interprets markup.
"""

import re
from html import escape

from ackscope.printable import is_hidden

_TICKS = re.compile(r"`+")
# Streamlit replaces this icon code before it parses Markdown, also inside code spans.
_ICON = re.compile(r"(?<=:)(?=material/)")


def visible(text: str) -> str:
    """Replace control, direction and zero-width characters by escapes, so that they cannot hide or reorder text."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(repr(character)[1:-1] if is_hidden(character) else character for character in text)


def html_text(text: str) -> str:
    """HTML that shows `text` literally, also within an attribute: markup is escaped, hidden characters are visible."""
    return escape(visible(text))


def literal(text: str) -> str:
    """Markdown that shows `text` literally, as a code span, in which Streamlit replaces nothing.

    Backslashes are not enough, because Streamlit replaces emoji codes and arrows after parsing Markdown.
    """
    shown = visible(text)
    if not shown.strip():
        return f"`{shown!r}`"
    spans = [_span(piece) for piece in _ICON.split(shown)]
    # Two adjacent spans would be parsed as one, so every second one is emphasised; the style sheet hides the emphasis.
    return "".join(f"*{span}*" if odd % 2 else span for odd, span in enumerate(spans))


def _span(text: str) -> str:
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{fence} {text} {fence}"


def shortened(text: str, longest: int) -> str:
    """Text with an ellipsis in its middle if it is too long, because names often differ at their end only."""
    half = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def plot_text(text: str, longest: int = 48) -> str:
    """Text for a plotly label, which interprets some HTML tags; long names are shortened in the middle."""
    shown = shortened(visible(text), longest)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
