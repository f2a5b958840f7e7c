"""One contact sheet for each page, for `docs/pictures.md`: `python -m tests.dashboard.contact_sheets TAKEN SHEETS`.

TAKEN is the folder that `tests.dashboard.pictures` wrote, with all numbers of findings or some. From top to bottom:
wide light, wide dark, then both on a phone.
"""

import argparse
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from tests.dashboard.pictures import FINDINGS, SIZES, views

_WIDTH, _GAP, _LABEL, _QUALITY = 520, 8, 22, 60
_BACKGROUND, _INK = "#d5d9de", "#14171b"


def sheet(taken: Path, name: str) -> Image.Image:
    """All pictures of one page, a column for each number of findings; FileNotFoundError names one that is missing."""
    numbers = [number for number in FINDINGS if (taken / f"{number:03}" / f"{name}-wide-light.png").exists()]
    if not numbers:
        raise FileNotFoundError(taken / f"{name}-wide-light.png")
    phone = (_WIDTH - _GAP) // 2
    heights = {size: round(width * SIZES[size][1] / SIZES[size][0]) for size, width in _widths(phone).items()}
    rows = {("wide", "light"): _LABEL, ("wide", "dark"): _LABEL + heights["wide"] + _GAP}
    below = _LABEL + 2 * (heights["wide"] + _GAP)
    canvas = Image.new("RGB", (len(numbers) * (_WIDTH + _GAP) - _GAP, below + heights["phone"]), _BACKGROUND)
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(15)
    for column, number in enumerate(numbers):
        left = column * (_WIDTH + _GAP)
        draw.text((left + 4, 2), f"{number} finding{'' if number == 1 else 's'}", _INK, font)
        for (size, scheme), top in rows.items():
            canvas.paste(_picture(taken, number, f"{name}-{size}-{scheme}", (_WIDTH, heights[size])), (left, top))
        for place, scheme in enumerate(("light", "dark")):
            picture = _picture(taken, number, f"{name}-phone-{scheme}", (phone, heights["phone"]))
            canvas.paste(picture, (left + place * (phone + _GAP), below))
    return canvas


def _widths(phone: int) -> dict[str, int]:
    return {"wide": _WIDTH, "phone": phone}


def _picture(taken: Path, findings: int, name: str, size: tuple[int, int]) -> Image.Image:
    with Image.open(taken / f"{findings:03}" / f"{name}.png") as picture:
        return picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)


def main() -> None:
    """Write a sheet for every page."""
    parser = argparse.ArgumentParser(description="One contact sheet for each page.")
    parser.add_argument("taken", type=Path, help="folder that tests.dashboard.pictures wrote")
    parser.add_argument("sheets", type=Path, help="folder for the sheets")
    args = parser.parse_args()
    args.sheets.mkdir(parents=True, exist_ok=True)
    for view in views(1):
        sheet(args.taken, view.name).save(args.sheets / f"page-{view.name}.webp", quality=_QUALITY, method=6)


if __name__ == "__main__":
    main()
