"""Pictures of every page with 0, 1, 12 and 100 findings: `python -m tests.dashboard.pictures --out FOLDER [PAGE ...]`.

Wide and on a phone, light and dark, of the real dashboard over made-up clusters; `index.html` shows them side by side.
It needs Chromium, and no broker: real faults on a real one are in `tests.e2e.pictures`.
"""

import argparse
import html
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Browser, Error, Page

from tests.dashboard import history_files, rollup_files
from tests.dashboard.browser import chromium, quiet
from tests.dashboard.command import serving_page
from tests.dashboard.living_shop import living, shop_queues

CLUSTER = "shop"
FINDINGS = (0, 1, 12, 100)
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
_SCHEMES = ("light", "dark")
_OTHERS = ("warehouse", "payments", "returns-eu", "returns-us", "press", "search", "lab")
_FIXTURES = Path(__file__).parents[1] / "fixtures/verify"
_DRAWN_MS = 1500.0
_TALLEST = 6000


class View(NamedTuple):
    """One page to take: its name in file names, and its address below the dashboard."""

    name: str
    address: str = ""


def views(findings: int) -> tuple[View, ...]:
    """Every page, and the states of it that look different."""
    first = shop_queues(findings, 2)[0]
    queue = urlencode({"queue": first.name, "vhost": first.vhost})
    return (
        View("now"),
        View("fleet", "fleet"),
        View("confirms", f"confirms?cluster={CLUSTER}&stream=quorum"),
        View("queues", f"queues?cluster={CLUSTER}"),
        View("queue", f"queues?cluster={CLUSTER}&{queue}"),
        View("consumers", f"consumers?cluster={CLUSTER}"),
        View("redeliveries", f"redeliveries?cluster={CLUSTER}"),
        View("nodes", f"nodes?cluster={CLUSTER}"),
        View("history", f"history?cluster={CLUSTER}"),
        View("timeline", f"timeline?cluster={CLUSTER}"),
        View("topology", f"topology?cluster={CLUSTER}"),
        View("topology-queue", f"topology?cluster={CLUSTER}&{queue}"),
        View("semantics", f"semantics?cluster={CLUSTER}"),
        View("probe", f"probe?cluster={CLUSTER}"),
    )


def take(browser: Browser, url: str, wanted: View, folder: Path, *, whole: bool = True) -> Iterator[Path]:
    """Take a page in both sizes and both themes, each as the first screen, and light ones in full; yields the files."""
    context = browser.new_context(viewport=_size("wide"))
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{url}/{wanted.address}")
    for scheme in _SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for size in SIZES:
            page.set_viewport_size(_size(size))
            _drawn(page)
            name = f"{wanted.name}-{size}-{scheme}"
            path = folder / f"{name}.png"
            page.screenshot(path=str(path))
            yield path
            if whole and scheme == "light":
                yield _whole(page, size, folder / f"{name}-whole.png")
    context.close()


def _size(name: str) -> dict[str, int]:
    width, height = SIZES[name]
    return {"width": width, "height": height}


def _whole(page: Page, size: str, path: Path) -> Path:
    """The page scrolls inside the window: a taller window shows all of it."""
    height = page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({**_size(size), "height": min(int(height) + 40, _TALLEST)})
    _drawn(page)
    page.screenshot(path=str(path))
    return path


def _drawn(page: Page) -> None:
    """Charts and tables come a moment after the words; a page that is never quiet is taken as it is."""
    page.wait_for_timeout(_DRAWN_MS)
    try:
        quiet(page, 20)
    except Error:
        sys.stderr.write(f"{page.url}: not quiet\n")


def _history(root: Path, notes: Path) -> None:
    """Rollups and notes of some hours with a fault."""
    history_files.write_story(root, name="orders.invoices", cluster=CLUSTER)
    rollup_files.write_story(root, cluster=CLUSTER)
    note = {"cluster": CLUSTER, "at": time.time() - 1500, "written": time.time(), "author": "ann"}
    notes.write_text(json.dumps({**note, "text": "invoices 4.2 deployed"}) + "\n")


def _contact_sheet(folder: Path, taken: list[Path]) -> None:
    """A page with every picture."""
    figures = "".join(
        f'<figure><a href="{name}"><img src="{name}" loading="lazy"></a><figcaption>{name}</figcaption></figure>'
        for name in (html.escape(str(path.relative_to(folder))) for path in taken)
    )
    style = "body{font:14px sans-serif}figure{display:inline-block;margin:8px;vertical-align:top}img{max-height:420px}"
    page = f'<!doctype html><meta charset="utf-8"><title>Pictures</title><style>{style}</style>{figures}\n'
    (folder / "index.html").write_text(page)


def main() -> None:
    """Take them all, or some."""
    parser = argparse.ArgumentParser(description="Pictures of every page, in two sizes and two themes.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures")
    parser.add_argument("--findings", type=int, nargs="*", default=FINDINGS, help="0 1 12 100 without it")
    parser.add_argument("--first", action="store_true", help="first screens only, no whole pages")
    parser.add_argument("pages", nargs="*", help="names such as now, queue; all without one")
    args = parser.parse_args()
    taken: list[Path] = []
    with chromium() as browser:
        for findings in args.findings:
            folder = args.out / f"{findings:03}"
            folder.mkdir(parents=True, exist_ok=True)
            others: dict[str, int | None] = dict.fromkeys(_OTHERS, 0) if findings > 1 else {}
            with (
                TemporaryDirectory(prefix="ackscope-pictures-") as scratch,
                living({CLUSTER: findings, **others, **({"depot": None} if others else {})}, Path(scratch)) as served,
            ):
                root, notes = Path(scratch) / "rollups", Path(scratch) / "notes.jsonl"
                if findings:
                    _history(root, notes)
                more = ("--notes", str(notes), "--semantics", str(_FIXTURES / "4.3.6.json"))
                with serving_page(served[1], root, Path(scratch), "", *more) as dashboard:
                    for view in views(findings):
                        if not args.pages or view.name in args.pages:
                            taken += take(browser, dashboard.url, view, folder, whole=not args.first)
                            sys.stderr.write(f"{findings} findings: {view.name}\n")
    _contact_sheet(args.out, taken)


if __name__ == "__main__":
    main()
