"""Pictures of every page during real faults: `python -m tests.e2e.pictures [--out FOLDER] [--page URL] [NAME ...]`.

A broker of the lab, the shop on it, eleven faults, and the real pipeline. With the same names each time, so that a
picture can be held against the one before. `--beside` takes RabbitMQ's management page beside this one instead: the
jobs of `tests.e2e.beside`.
"""

import argparse
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Browser, Page

from tests.dashboard.browser import chromium
from tests.e2e import beside
from tests.e2e.drama import TOGETHER
from tests.e2e.trouble import CLUSTER, Trouble, in_trouble
from tests.e2e.visits import quiet

_IMAGES = Path(__file__).parents[2] / "docs/images"
_DESK, _PHONE = (1280, 900), (390, 844)
_COLOURS, _MOST = 256, 150_000
_NAMED = 300.0


class Picture(NamedTuple):
    """One picture: its file's name, the address below the page, and the window."""

    name: str
    address: str = ""
    size: tuple[int, int] = _DESK
    dark: bool = False


PICTURES = (
    Picture("now"),
    Picture("now-dark", dark=True),
    Picture("now-phone", size=_PHONE),
    Picture("confirms", "confirms?stream=quorum&range=15m"),
    Picture("queues", "queues"),
    Picture("queue", "queues?queue=fault.stuck-consumer&vhost=/"),
    Picture("consumers", "consumers"),
    Picture("redeliveries", "redeliveries?range=15m"),
    Picture("nodes", "nodes"),
    Picture("history", "history?around=15m"),
    Picture("timeline", "timeline"),
    Picture("fleet", "fleet"),
    Picture("topology", "topology?queue=fault.dead-letter-cycle&vhost=/"),
    Picture("semantics", "semantics?verdict=differs"),
    Picture("probe", "probe?probe=rtt"),
)


def take(browser: Browser, url: str, wanted: Picture, folder: Path) -> Path:
    """One picture of a running page.

    Raises:
        SystemExit: it would be too large for a repository.
    """
    width, height = wanted.size
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if wanted.dark else "light"
    )
    page.set_default_timeout(120_000)
    page.goto(f"{url}/{wanted.address}")
    quiet(page)
    if wanted.name == "probe":
        page.get_by_role("button", name="Run it now").click()
        page.get_by_text("Report of the rtt probe").wait_for()
    _drawn(page)
    path = folder / f"{wanted.name}.png"
    page.screenshot(path=str(path))
    page.close()
    with Image.open(path) as full:
        small = full.convert("RGB").quantize(_COLOURS, kmeans=2, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    if path.stat().st_size > _MOST:
        raise SystemExit(f"{path}: {path.stat().st_size:,} bytes, more than {_MOST:,}")
    return path


def _drawn(page: Page) -> None:
    """Charts and tables come a moment after the words."""
    quiet(page)
    page.wait_for_timeout(4000)
    quiet(page)


def _fall_ill(trouble: Trouble, seconds: float) -> None:
    """Hold the faults for some minutes, and have the pipeline roll up what was seen of them."""
    time.sleep(seconds / 2)
    trouble.hold(TOGETHER)
    trouble.named(TOGETHER, _NAMED)
    time.sleep(seconds)
    trouble.verify()
    folders = ["--landing", str(trouble.landing), "--rollups", str(trouble.rollups)]
    subprocess.run([sys.executable, "-m", "ackscope", "pipeline", "run", *folders], check=True)
    trouble.wait_verified()


def main() -> None:
    """Take them all."""
    parser = argparse.ArgumentParser(description=f"Pictures of every page while cluster {CLUSTER!r} is in trouble.")
    parser.add_argument("--out", type=Path, default=_IMAGES, help="where they go (default: docs/images)")
    parser.add_argument("--ill", type=float, default=300.0, help="seconds that the faults last before (default: 300)")
    parser.add_argument("--page", help="a page that runs already, instead of a broker of its own")
    parser.add_argument("--beside", action="store_true", help="the same jobs in RabbitMQ's management page and in ours")
    parser.add_argument("names", nargs="*", help="only these")
    args = parser.parse_args()
    if args.beside and args.page:
        parser.error("--beside needs a broker of its own")
    args.out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        url = args.page
        if url is None:
            trouble = stack.enter_context(in_trouble())
            _fall_ill(trouble, args.ill)
            url = trouble.page
        browser = stack.enter_context(chromium())
        if args.beside:
            for line in beside.take(browser, url, trouble.lab.nodes[0].management, args.out, args.names):
                sys.stderr.write(f"{line}\n")
            return
        for wanted in PICTURES:
            if not args.names or wanted.name in args.names:
                path = take(browser, url, wanted, args.out)
                sys.stderr.write(f"{path} {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
