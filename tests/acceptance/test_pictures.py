"""The documentation's pictures show the pages as they are: taken anew, each looks like the one that is shown."""

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.acceptance.pictures import FOLDER, LOW, PAGES, stage, take

pytestmark = pytest.mark.needs("chromium")

UNLIKE_MAX = 0.01
"""Mean difference of two pictures; white and black have 1. Other fonts make a fifth of it, a taller header twice it."""
UNLIKE_WITH_TIME_MAX = 0.03
"""The same of pages with a time axis: another hour or month makes half of it."""
WITH_TIME = {"credit", "overview", "overview-dark"}
_LOOK = """async (pictures) => {
  const [one, other] = await Promise.all(pictures.map(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), {width: 64, height: 40});
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(image, 0, 0, 64, 40);
    const {data: points} = context.getImageData(0, 0, 64, 40);
    return {size: [image.naturalWidth, image.naturalHeight], points};
  }));
  const sum = one.points.reduce((all, value, at) => all + Math.abs(value - other.points[at]), 0);
  return {sizes: [one.size, other.size], unlike: sum / one.points.length / 255};
}"""


@pytest.fixture(scope="module")
def taken(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    with stage(tmp_path_factory.mktemp("shop")) as service:
        take(browser, service.url, folder)
    return folder


def unlike(browser: Browser, one: Path, other: Path) -> float:
    """How far two pictures differ, on average; they have to be of one size."""
    with browser.new_context() as context:
        told = context.new_page().evaluate(
            _LOOK, [base64.b64encode(each.read_bytes()).decode() for each in (one, other)]
        )
    assert told["sizes"][0] == told["sizes"][1]
    return float(told["unlike"])


@pytest.mark.parametrize("name", PAGES)
def test_a_picture_looks_like_the_page(browser: Browser, taken: Path, name: str) -> None:
    """Where it does not, `python -m tests.acceptance.pictures` takes it anew."""
    most = UNLIKE_WITH_TIME_MAX if name in WITH_TIME else UNLIKE_MAX
    assert unlike(browser, taken / f"{name}.png", FOLDER / f"{name}.png") < most


def test_pictures_of_two_pages_or_two_themes_are_unlike(browser: Browser, taken: Path) -> None:
    names = [name for name in PAGES if name not in LOW]
    found = [
        unlike(browser, taken / f"{one}.png", taken / f"{other}.png") for one in names for other in names if one < other
    ]
    assert min(found) > UNLIKE_MAX


def test_all_pictures_are_taken() -> None:
    assert sorted(each.stem for each in FOLDER.iterdir()) == sorted(PAGES)
