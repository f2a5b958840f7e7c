"""A short animated picture of a real fault, its finding and its end: `python -m tests.e2e.animation [--out FILE]`.

The demo: nothing wrong, a consumer that hangs, its finding, its queue, and after the fix nothing wrong again. It takes
five minutes.
"""

import argparse
import re
import sys
import time
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page

from lab.demo.stack import Stack, running_stack
from tests.dashboard.browser import chromium
from tests.e2e.visits import quiet

FAULT = "stuck-consumer"
MOST_BYTES = 1_500_000
_FILE = Path(__file__).parents[2] / "docs/images/fault-to-fix.webp"
_WINDOW = {"width": 1280, "height": 860}
_WIDTH, _CAPTION = 960, 34
_FRAME_MS = 3500
_NAMED, _HELD, _GONE = 180.0, 45.0, 240.0
_WELL = re.compile(r"Nothing wrong|^\D*\d+ info")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


class _Frames:
    """Screenshots with a caption below each."""

    def __init__(self) -> None:
        self.taken: list[Image.Image] = []

    def take(self, page: Page, caption: str) -> None:
        """Take the page as it is now."""
        # Nothing is pointed at: no hint hides what is below it.
        page.mouse.move(1, 1)
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
        _say(text)

    def save(self, path: Path) -> None:
        """Write the animation.

        Raises:
            SystemExit: it is too large for a repository.
        """
        first, *others = self.taken
        first.save(path, save_all=True, append_images=others, duration=_FRAME_MS, loop=0, quality=72, method=6)
        if path.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{path}: {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}")


def play(stack: Stack, page: Page, frames: _Frames) -> None:
    """From a healthy broker through the fault to the fix.

    Raises:
        SystemExit: the fault was not named, or the finding did not end.
    """
    page.goto(stack.dashboard)
    page.get_by_role("heading", name=_WELL).first.wait_for()
    frames.take(page, "A healthy broker: nothing wrong.")
    stack.inject(FAULT)
    _wait(stack, present=True, seconds=_NAMED)
    # Long enough for curves.
    time.sleep(_HELD)
    row = page.locator(".st-key-finding-rows button:visible", has_text=FAULT)
    row.first.wait_for()
    row.first.click()
    frames.take(page, "A consumer hangs. The finding names it, the cause, and the next steps.")
    page.get_by_text("Queue details").first.click()
    page.wait_for_url("**/queues?**")
    page.wait_for_function("() => document.querySelectorAll('.stPlotlyChart .main-svg').length >= 3")
    frames.take(page, "Its queue: nothing is acknowledged, the prefetch is full, the backlog grows.")
    stack.services.stop(f"fault-{FAULT}")
    _wait(stack, present=False, seconds=_GONE)
    page.goto(stack.dashboard)
    page.get_by_role("heading", name=_WELL).first.wait_for()
    frames.take(page, "The client was restarted: the finding has ended.")


def _wait(stack: Stack, *, present: bool, seconds: float) -> None:
    """Wait until the finding is there, as more than information, or gone."""
    deadline = time.monotonic() + seconds
    while _is_named(stack) is not present:
        if time.monotonic() > deadline:
            raise SystemExit(f"{FAULT}: its finding {'did not come' if present else 'is still there'}: {seconds:.0f} s")
        time.sleep(2)


def _is_named(stack: Stack) -> bool:
    clusters = stack.get("/api/v1/findings").get("clusters", [])
    return any(it["rule"] == FAULT and it["severity"] == "critical" for each in clusters for it in each["findings"])


def main() -> None:
    """Take it."""
    parser = argparse.ArgumentParser(description="An animated picture: fault, finding, fix.")
    parser.add_argument("--out", type=Path, default=_FILE, help="file (default: docs/images/fault-to-fix.webp)")
    args = parser.parse_args()
    frames = _Frames()
    with running_stack(broker="4.3", step=_say) as stack, chromium() as browser:
        page = browser.new_page(viewport=_WINDOW)
        page.set_default_timeout(120_000)
        play(stack, page, frames)
    frames.save(args.out)
    _say(f"{args.out} {args.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
