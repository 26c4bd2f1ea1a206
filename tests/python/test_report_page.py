# SPDX-License-Identifier: BSD-3-Clause
"""The report as a reader has it: opened from disk in headless Chromium, in light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

import golden
from simulated import LOSSY, simulate
from simulated import LOSSY_PHASES as PHASES
from switchbench.base.errors import ConfigurationError
from switchbench.render.report import build

sync_api = pytest.importorskip("playwright.sync_api")

try:
    CHROMIUM = build.find_browser()
except ConfigurationError as error:
    pytest.skip(str(error), allow_module_level=True)

UNFOLD = "for (const fold of document.querySelectorAll('details')) fold.open = true"
SCREEN = {"width": 1280, "height": 800}
DRAWN_MS = 20_000  # patience, on a busy machine


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results directory with its report.html."""
    made = simulate(tmp_path_factory.mktemp("results") / "run", LOSSY)
    build.write(made)
    return made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Yield one browser for all tests of the module."""
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass(eq=False)
class Opened:
    """A page, with its requests and the messages of its console."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def table(self, name: str) -> Any:
        """Return a table of the page, brought into sight."""
        place = self.page.locator(f"#table-{name}")
        place.scroll_into_view_if_needed()
        place.locator("table:not(.still) tbody tr:not(.spacer)").first.wait_for(timeout=DRAWN_MS)
        return place

    def column(self, name: str, title: str) -> list[str]:
        """Return the texts of a column's rows that are in the document."""
        place = self.table(name)
        titles = place.locator("thead tr:first-child button")
        number = [text.split("\n")[0].strip() for text in titles.all_inner_texts()].index(title)
        cells = place.locator(f"tbody tr:not(.spacer) td:nth-child({number + 1})")
        found: list[str] = cells.all_inner_texts()
        return found


Open = Callable[..., Opened]


@pytest.fixture
def open_page(chromium: Any, directory: Path) -> Iterator[Open]:
    """Yield a function that opens a page, with all sections unfolded if `unfold`; check at the end
    that the pages fetched nothing and wrote nothing to the console."""
    pages: dict[Opened, str] = {}

    def opens(
        path: Path = directory / build.REPORT, unfold: bool = False, **options: Any
    ) -> Opened:
        page = chromium.new_context(**({"viewport": SCREEN, "offline": True} | options)).new_page()
        opened = Opened(page)
        page.on("request", lambda request: opened.requests.append(request.url))
        page.on("console", lambda message: opened.complaints.append(message.text))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.goto(path.as_uri())
        if unfold:
            page.evaluate(UNFOLD)
        pages[opened] = path.as_uri()
        return opened

    yield opens
    for opened, address in pages.items():
        opened.page.context.close()
        asked = [url for url in opened.requests if not url.startswith(("data:", "blob:"))]
        assert (asked, opened.complaints) == ([address], [])


@pytest.fixture
def opened(open_page: Open) -> Opened:
    """Return the report, opened, with every section unfolded."""
    return open_page(unfold=True, viewport={"width": 1300, "height": 900})


def test_every_figure_draws_when_it_comes_into_sight(opened: Opened) -> None:
    """The buttons for its PNG and its SVG file differ."""
    figures = opened.page.locator("[data-figure]")
    assert figures.count() >= 1
    for number in range(figures.count()):
        figure = figures.nth(number)
        figure.scroll_into_view_if_needed()
        opened.page.wait_for_function(
            "place => place.dataset.state", arg=figure.element_handle(), timeout=DRAWN_MS
        )
        assert figure.get_attribute("data-state") == "drawn", figure.get_attribute("data-figure")
        assert figure.locator(".main-svg").count() > 0
        assert figure.locator(".modebar-btn svg.word").all_text_contents() == ["PNG", "SVG"]


def test_what_is_out_of_sight_is_not_drawn(opened: Opened) -> None:
    opened.table("plans")
    last = opened.page.locator("[data-table]").last
    assert last.locator("table:not(.still)").count() == 0


def test_anchors_are_unique_and_lead_somewhere(opened: Opened) -> None:
    names = opened.page.locator("[id]").evaluate_all("places => places.map(place => place.id)")
    assert len(names) == len(set(names))
    links = opened.page.locator("nav a")
    targets = links.evaluate_all("links => links.map(link => link.hash.slice(1))")
    assert len(targets) > 10
    assert set(targets) <= set(names)


def test_sorting_up_and_down_and_by_the_numbers_in_words(opened: Opened) -> None:
    skews = opened.column("skew", "start skew")
    assert skews[:2] == ["20.00", "41.24"]  # by phase
    press = opened.table("skew").get_by_role("button", name="start skew")
    press.click()
    up = [float(text) for text in opened.column("skew", "start skew")]
    assert up == sorted(up)
    press.click()
    down = [float(text) for text in opened.column("skew", "start skew")]
    assert down == sorted(down, reverse=True)
    heading = opened.table("skew").locator("th[aria-sort=descending]")
    assert "start skew" in heading.inner_text()
    press.click()
    assert opened.column("skew", "start skew") == skews
    opened.table("ports").get_by_role("button", name="port", exact=True).click()
    ports = opened.column("ports", "port")
    assert ports[:4] == ["node1:e0", "node1:e0", "node2:e0", "node2:e0"]
    assert ports[-1] in ("node12:e0", "node9:e0")  # what is in sight, in the order of numbers
    numbers = [int(name[4:].split(":")[0]) for name in ports]
    assert numbers == sorted(numbers)


def test_filters_find_the_loss(opened: Opened) -> None:
    losses = opened.table("losses")
    losses.get_by_label("Filter by lost frames").fill(">0")
    assert opened.column("losses", "phase") == ["distance 4"]
    assert opened.column("losses", "lost frames") == ["1,000"]
    with opened.page.expect_download() as download:
        losses.get_by_role("button", name="Save as CSV").click()
    assert download.value.suggested_filename == "losses.csv"
    lines = Path(download.value.path()).read_text().splitlines()
    assert len(lines) == 2  # what is shown
    assert "1000" in lines[1].split(",")
    rows = PHASES
    assert losses.locator(".tally").inner_text() == f"1 of {rows} rows"
    losses.get_by_role("button", name="Show all").click()
    assert losses.locator(".tally").inner_text() == f"{rows} rows"
    losses.get_by_label("Filter by lost frames").fill("-")  # not observed
    assert set(opened.column("losses", "transport")) == {"tcp (simulated)"}
    opened.table("skew").get_by_label("Filter by transport").select_option("tcp (simulated)")
    assert set(opened.column("skew", "transport")) == {"tcp (simulated)"}


FILTERS = yaml.safe_load((Path(__file__).parent / "data" / "filters.yaml").read_text())


def long_table(opened: Opened, name: str, values: str, kind: str = "number") -> None:
    """A further table of one column; `values`: JavaScript."""
    opened.page.evaluate(
        """([name, values, kind]) => {
            const place = document.createElement("div");
            place.id = name;
            document.querySelector("main").prepend(place);
            const columns = [{title: "n", kind, unit: "", definition: "d"}];
            new LongTable(place, {columns, values: [eval(values)]});
        }""",
        [name, values, kind],
    )


def test_filters_mean_what_is_shown(opened: Opened) -> None:
    long_table(opened, "halves", "[...[...Array(10000).keys()].map((n) => n / 2), null]")
    box = opened.page.locator("#halves").get_by_label("Filter by n")
    tally = opened.page.locator("#halves .tally")
    for typed, rows, complaint in FILTERS:
        box.fill(typed)
        said = tally.inner_text()
        count = int(said.split()[0].replace(",", ""))
        assert (count, box.get_attribute("aria-invalid")) == (rows, str(bool(complaint)).lower()), (
            f"{typed}: {said}"
        )
        assert complaint in said
    opened.page.locator("#halves").get_by_role("button", name="Show all").click()
    assert tally.inner_text() == "10,001 rows"


# --- the first screen, and how much there is before anything is opened ----------------------------


@pytest.fixture(scope="module")
def golden_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a run of twelve trials, as a demo has them."""
    folder = tmp_path_factory.mktemp("golden")
    return build.write(golden.unpack("matrices", folder), folder / "report.html")


def screen(open_page: Open, path: Path, **options: Any) -> Any:
    """Return a page as it is opened, with its first figure drawn."""
    page = open_page(path, **options).page
    page.locator("[data-figure]").first.scroll_into_view_if_needed()
    page.locator("[data-figure][data-state=drawn]").first.wait_for(timeout=DRAWN_MS)
    page.evaluate("scrollTo(0, 0)")
    return page


def test_the_first_screen_says_what_matters(open_page: Open, golden_page: Path) -> None:
    page = screen(open_page, golden_page)
    first, glance = page.locator(".first"), page.locator(".glance")
    box = first.bounding_box()
    assert box["y"] + box["height"] <= SCREEN["height"]
    assert "Complete" in first.inner_text()
    assert first.locator(".face li[data-mood=good]").count() == 8
    words = glance.inner_text()
    wanted = (
        "alike",
        "0\nof 1,006,259 frames",
        "µs",
        "Tester",
        "Findings\n1 info",
        "Colours reach",
    )
    assert all(said in words for said in wanted)
    title = glance.locator(".block h3")
    assert title.evaluate("place => place.scrollWidth <= place.clientWidth")  # nothing is cut
    assert title.inner_text().endswith("1518 B frames, 95 % of line")
    assert glance.locator("[data-figure]").count() == 1


@pytest.mark.parametrize("name", ["matrices", "parameters", "tree", "acceptance"])
def test_at_most_eight_screens_before_anything_is_opened(
    open_page: Open, name: str, tmp_path: Path
) -> None:
    path = build.write(golden.unpack(name, tmp_path), tmp_path / "report.html")
    page = screen(open_page, path)
    folded = page.locator("details.section:not([open])").count()
    for place in page.locator("[data-table]:visible").all():  # all of them drawn
        place.scroll_into_view_if_needed()
        place.locator("tbody tr:not(.spacer)").first.wait_for(timeout=DRAWN_MS)
    assert page.evaluate("document.documentElement.scrollHeight") <= 8 * SCREEN["height"]
    assert folded > 5


@pytest.mark.parametrize("width", [360, 800, 1280])
def test_nothing_is_wider_than_the_window(open_page: Open, golden_page: Path, width: int) -> None:
    page = screen(open_page, golden_page, viewport={"width": width, "height": 800})
    page.evaluate(UNFOLD)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_has_a_menu_that_leads_to_sections(open_page: Open, golden_page: Path) -> None:
    page = screen(open_page, golden_page, viewport={"width": 390, "height": 844})
    contents = page.locator("#contents")
    assert contents.is_hidden()
    page.locator("#menu").click()
    assert page.locator("#menu").get_attribute("aria-expanded") == "true"
    contents.get_by_role("link", name="Ports", exact=True).click()
    assert contents.is_hidden()
    page.locator("#table-ports tbody tr:not(.spacer)").first.wait_for(timeout=DRAWN_MS)
    title = page.locator("#section-ports h2").bounding_box()
    assert 0 <= title["y"] <= 200  # tables that are drawn meanwhile have kept their room


def test_the_first_key_leads_past_the_contents(open_page: Open, golden_page: Path) -> None:
    page = screen(open_page, golden_page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_wide_table_says_that_it_goes_on(open_page: Open, golden_page: Path) -> None:
    page = screen(open_page, golden_page)
    place = page.locator("#table-phases")
    place.scroll_into_view_if_needed()
    beyond = place.locator(".beyond")
    page.wait_for_function("() => document.querySelector('#table-phases .beyond')?.textContent")
    assert re.fullmatch(r"scroll right for \d+ more columns →", beyond.inner_text())
    frame, view = place.locator(".table-frame"), place.locator(".table-view")
    assert frame.get_attribute("data-right") is not None
    first = place.locator("tbody tr:not(.spacer) td").first
    before = first.bounding_box()["x"]
    view.evaluate("view => { view.scrollLeft = view.scrollWidth; }")
    page.wait_for_function("() => !document.querySelector('#table-phases [data-right]')")
    assert beyond.inner_text() == ""
    assert first.bounding_box()["x"] == before  # frozen


def test_numbers_say_what_they_are(opened: Opened) -> None:
    skew = opened.table("skew")
    cell = skew.locator("tbody td.number").first
    cell.hover()
    hint = opened.page.locator("#hint")
    hint.wait_for(state="visible")
    assert "start skew, µs" in hint.inner_text()
    assert "latest minus earliest real start" in hint.inner_text()
    opened.page.keyboard.press("Escape")
    assert hint.is_hidden()
    skew.get_by_role("button", name="stop skew").focus()  # without a pointer
    hint.wait_for(state="visible")
    assert "stop skew" in hint.inner_text()


@pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
def test_light_and_dark(open_page: Open, scheme: str, other: str) -> None:
    opened = open_page(unfold=True, color_scheme=scheme)
    figure = opened.page.locator("[data-figure]").first

    def is_light() -> tuple[bool, bool]:
        """Return the page and the figure on it."""
        figure.scroll_into_view_if_needed()
        figure.locator(".main-svg").first.wait_for(timeout=DRAWN_MS)
        ground = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        paper = figure.locator(".main-svg").first.evaluate("svg => svg.style.background")
        return brightness(ground) > 128, brightness(paper) > 128

    assert is_light() == ((scheme == "light"),) * 2
    opened.page.locator("#theme").click()
    assert is_light() == ((other == "light"),) * 2


def brightness(colour: str) -> float:
    """Return the brightness of a colour as `rgb(23, 27, 31)`."""
    parts = colour.partition("(")[2].rstrip(")").split(",")[:3]
    return sum(float(part) for part in parts) / 3


def test_paper_has_all_figures_and_rows(opened: Opened) -> None:
    opened.page.evaluate(
        """() => { window.print = () => {
            const figures = [...document.querySelectorAll("[data-figure]")];
            window.printed = figures.map((figure) => figure.dataset.state);
        }; }"""
    )
    opened.page.locator("#print").click()
    opened.page.wait_for_function("window.printed", timeout=2 * DRAWN_MS)
    states = opened.page.evaluate("window.printed")
    assert set(states) == {"drawn"}
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    rows = opened.page.locator("#table-losses tbody tr:not(.spacer)")
    opened.page.wait_for_function(
        "n => document.querySelectorAll('#table-losses tbody tr:not(.spacer)').length === n",
        arg=PHASES,
    )
    assert rows.count() == PHASES


def test_paper_is_light_and_nothing_is_cut(open_page: Open) -> None:
    """The browser's own print command, of a dark page: dark words, each figure on a page, and the
    headings of tables that go on."""
    opened = open_page(unfold=True, color_scheme="dark")
    page = opened.page
    figure = page.locator("[data-figure^=heat-map]").first
    figure.scroll_into_view_if_needed()
    figure.locator(".main-svg").first.wait_for(timeout=DRAWN_MS)
    opened.table("losses")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    titles = page.locator("details.section > summary:has(+ .block > [data-figure])")
    assert titles.count() > 2
    kept = titles.evaluate_all("some => some.map(one => getComputedStyle(one).breakAfter)")
    assert set(kept) == {"avoid"}  # a section's title stays with its first figure
    style = "(place, name) => getComputedStyle(place)[name]"
    for place in ("main p", "#table-losses td", "#table-losses th"):
        colour = page.locator(place).first.evaluate(style, "color")
        assert brightness(colour) < 128, f"{place} is {colour}"
    assert brightness(figure.locator(".xtick text").first.evaluate(style, "fill")) < 128
    zoom = float(figure.evaluate(style, "zoom"))
    assert zoom < 1
    assert zoom * figure.evaluate("place => place.offsetHeight") <= 461
    head = page.locator("#table-losses thead")
    assert head.evaluate(style, "display") == "table-header-group"
    assert head.evaluate(style, "breakInside") == "avoid"
    buttons = figure.locator(".updatemenu-container")
    assert page.locator("#table-losses .filters").is_hidden()
    assert buttons.is_hidden()
    page.emulate_media(media="screen")
    assert buttons.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert figure.evaluate("place => place.style.zoom") == ""


def test_a_hundred_thousand_rows_scroll(opened: Opened) -> None:
    long_table(opened, "many", "[...Array(100000).keys()]", "count")
    view = opened.page.locator("#many .table-view")
    assert opened.page.locator("#many tbody tr").count() < 100
    view.evaluate("view => { view.scrollTop = view.scrollHeight; }")
    opened.page.locator("#many td", has_text="99,999").wait_for()
    opened.page.locator("#many th button").click()
    opened.page.locator("#many th button").click()
    assert opened.page.locator("#many td").first.inner_text() == "99,999"


def test_an_old_browser_is_told_so(chromium: Any, directory: Path) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto((directory / build.REPORT).as_uri())
    assert "too old" in page.locator("p.notice").first.inner_text()
    context.close()
