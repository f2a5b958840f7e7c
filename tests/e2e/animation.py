"""A short animated picture of a real fault, its finding and its end: `python -m tests.e2e.animation [--out FILE]`.

A broker of the lab with the shop on it: nothing wrong, a consumer that hangs, its finding, its queue, and after the fix
nothing wrong again. It takes about five minutes.
"""

import argparse
import re
import sys
import time
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page

from tests.dashboard.browser import chromium
from tests.e2e.trouble import Trouble, in_trouble
from tests.e2e.visits import quiet

FAULT = "stuck-consumer"
MOST_BYTES = 1_500_000
_FILE = Path(__file__).parents[2] / "docs/images/fault-to-fix.webp"
_WINDOW = {"width": 1280, "height": 760}
_WIDTH, _CAPTION = 960, 34
_FRAME_MS = 3500
_NAMED, _GONE = 180.0, 240.0
_INFORMATION = re.compile(r"Nothing wrong|\d+ info")


class _Frames:
    """Screenshots with a caption below each."""

    def __init__(self) -> None:
        self.taken: list[Image.Image] = []

    def take(self, page: Page, caption: str) -> None:
        """Take the page as it is now."""
        quiet(page)
        # Charts and tables come a moment after the words.
        page.wait_for_timeout(3000)
        path = Path(f"/tmp/ackscope-frame-{len(self.taken)}.png")
        page.screenshot(path=str(path))
        with Image.open(path) as full:
            height = round(full.height * _WIDTH / full.width)
            frame = Image.new("RGB", (_WIDTH, height + _CAPTION), "#14171b")
            frame.paste(full.convert("RGB").resize((_WIDTH, height), Image.Resampling.LANCZOS), (0, 0))
        path.unlink()
        text = f"{len(self.taken) + 1}. {caption}"
        ImageDraw.Draw(frame).text((14, height + 7), text, "#ffffff", ImageFont.load_default(16))
        self.taken.append(frame)
        sys.stderr.write(f"{text}\n")

    def save(self, path: Path) -> None:
        """Write the animation.

        Raises:
            SystemExit: it is too large for a repository.
        """
        first, *others = self.taken
        first.save(path, save_all=True, append_images=others, duration=_FRAME_MS, loop=0, quality=72, method=6)
        if path.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{path}: {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}")


def play(trouble: Trouble, page: Page, frames: _Frames) -> None:
    """From a healthy broker through the fault to the fix.

    Raises:
        SystemExit: the fault was not named, or the finding did not end.
    """
    page.goto(trouble.page)
    page.get_by_role("heading", name=_INFORMATION).first.wait_for()
    frames.take(page, "Nothing wrong.")
    trouble.hold([FAULT])
    held = trouble.held[FAULT]
    if not trouble.named([FAULT], _NAMED):
        raise SystemExit(f"{FAULT}: no finding within {_NAMED:.0f} s")
    row = page.locator(".st-key-finding-rows button:visible", has_text=FAULT)
    row.first.wait_for()
    row.first.click()
    frames.take(page, "A consumer hangs. The finding names it, the cause, and the next step.")
    page.get_by_text("Queue details").first.click()
    page.wait_for_url("**/queues?**")
    frames.take(page, "Its queue: nothing is acknowledged, the prefetch is full, the backlog grows.")
    page.get_by_text("Where its messages come from and go to").first.scroll_into_view_if_needed()
    frames.take(page, "Where its messages come from, and who holds them.")
    trouble.end([FAULT])
    deadline = time.monotonic() + _GONE
    while any(held.is_named_by(it) for it in trouble.findings()):
        if time.monotonic() > deadline:
            raise SystemExit(f"{FAULT}: its finding is still present after {_GONE:.0f} s")
        time.sleep(2)
    page.goto(trouble.page)
    page.get_by_role("heading", name=_INFORMATION).first.wait_for()
    frames.take(page, "The client was restarted: the finding has ended.")


def main() -> None:
    """Take it."""
    parser = argparse.ArgumentParser(description="An animated picture: fault, finding, fix.")
    parser.add_argument("--out", type=Path, default=_FILE, help="file (default: docs/images/fault-to-fix.webp)")
    args = parser.parse_args()
    frames = _Frames()
    with in_trouble() as trouble, chromium() as browser:
        # Long enough for curves.
        time.sleep(60)
        page = browser.new_page(viewport=_WINDOW)
        page.set_default_timeout(120_000)
        play(trouble, page, frames)
    frames.save(args.out)
    sys.stderr.write(f"{args.out} {args.out.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
