"""Foreign text, shown literally.

Queue names are chosen by applications: they may hold Markdown, HTML, `:emoji:` codes or control characters.
Whatever comes from the broker or the exporter passes through here on its way to anything that reads markup.
"""

import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Zl", "Zp"}
_TICKS = re.compile(r"`+")
# The page rewrites this code for an icon before Markdown is read, inside code spans too.
_ICON = re.compile(r"(?<=:)(?=material/)")


def visible(text: str) -> str:
    """Show control, direction and zero-width characters as their escapes, so that they cannot hide or reorder."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        repr(character)[1:-1] if unicodedata.category(character) in _HIDDEN else character for character in text
    )


def literal(text: str) -> str:
    """Markdown that shows `text` as it is, as a code span: the one place where Streamlit replaces nothing.

    Backslashes would not do: emoji codes and arrows are replaced after Markdown has been read.
    """
    shown = visible(text)
    if not shown.strip():
        return f"`{shown!r}`"
    spans = [_span(piece) for piece in _ICON.split(shown)]
    # Two spans side by side would be read as one, so every other one is emphasised; the style sheet undoes its look.
    return "".join(f"*{span}*" if odd % 2 else span for odd, span in enumerate(spans))


def _span(text: str) -> str:
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{fence} {text} {fence}"


def plot_text(text: str, longest: int = 48) -> str:
    """Text for a plotly label, which reads a few HTML tags; too long a name loses its middle."""
    shown = visible(text)
    if len(shown) > longest:
        half = (longest - 1) // 2
        shown = f"{shown[:half]}…{shown[-half:]}"
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
