import pytest

from dashboard.format.escape import literal, plot_text, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("orders", "` orders `", id="plain"),
        pytest.param("a`b", "`` a`b ``", id="a backtick lengthens the fence"),
        pytest.param("```", "```` ``` ````", id="only backticks"),
        pytest.param("a\nb", "` a\\nb `", id="a line break cannot end the span"),
        pytest.param("a:material/b:material/c", "` a: `*` material/b: `*` material/c `", id="an icon's code is parted"),
        pytest.param("", "`''`", id="nothing is shown as nothing"),
        pytest.param("  ", "`'  '`", id="blanks are shown"),
    ],
)
def test_literal_is_one_code_span(text: str, shown: str) -> None:
    """Whatever a name contains, it stays inside a code span."""
    assert shown == literal(text)


def test_hidden_characters_are_shown() -> None:
    """Direction overrides, zero-width characters and line breaks are escaped; letters of any language stay."""
    assert r"a\u202eb\u200bc\x00 Grüße 队列" == visible("a\u202eb\u200bc\x00 Grüße 队列")


def test_plot_labels_carry_no_markup() -> None:
    """Tags that plotly interprets are shown as text."""
    assert "&lt;b&gt;x&amp;y&lt;/b&gt;" == plot_text("<b>x&y</b>")


def test_plot_labels_show_both_ends_of_a_long_name() -> None:
    """Names often differ at their end."""
    assert "orders…emails" == plot_text("orders" + "x" * 50 + "emails", longest=13)
    assert "short" == plot_text("short", longest=13)
