# SPDX-License-Identifier: BSD-3-Clause
"""The report of a results directory: one HTML file that opens offline (doc/how-to/report.md).

This module chooses sections and their contents, and writes the page around them.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

from ... import __version__
from ...analysis.data import Measured
from ...base import format
from ...base.errors import ConfigurationError, RunError
from ...records.directory import CONFIGURATION, REPORT, replace_bytes
from ...records.summary_form import SummaryDocument, by, definition
from ...search.suites.declaration import Suite
from .. import first_screen as screen
from .. import tables
from ..first_screen import about_what, first_page
from ..printer import Table
from ..tables import Heading as s
from . import rates, times
from .chart import WORDS, Figure

# Sections open at first; the first screen does not fold.
_OPEN = (s.VERDICT, s.FINDINGS, s.RESULTS)
# figures for the first screen, the preferred one first
_FOREMOST = ("heat-map", "phases", "nodes")
_FOREMOST_PX = 520
# Makers of figures, in the order of sections.
KINDS: tuple[Callable[[Measured], Iterator[Figure]], ...] = (
    times.suites, rates.nodes, rates.plans, rates.maps, rates.course, times.messages, times.steps,
    times.percentiles,
)  # fmt: skip
# Exceptions that code raises on a summary of another version or a damaged one.
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)

T = TypeVar("T")


@dataclass(frozen=True)
class Report:
    """Finished page, and a sentence for each part that could not be shown."""

    text: str
    damage: list[str]


def write(directory: Path, out: Path | None = None) -> Path:
    """Write the report of a results directory to `out`, or to DIRECTORY/report.html.

    Return its path.
    """
    path = out or directory / REPORT
    replace_bytes(path, make(Measured.load(directory)).text.encode())
    return path


def make(measured: Measured) -> Report:
    """Return the report of a measured run."""
    return _Page(replace(measured, summary=screen.named(measured.summary))).finish()


@dataclass
class _Page:
    """HTML page of a report while its parts are added."""

    measured: Measured
    sections: dict[str, Section] = field(
        default_factory=lambda: {title: Section(title) for title in s}
    )
    damage: list[str] = field(default_factory=list)

    def finish(self) -> Report:
        """Fill all sections, then render the page around them: damage is known only at the end."""
        summary = self.measured.summary
        self.damage += self.measured.damage
        figures: list[Figure] = []
        titles: dict[str, int] = {}
        for kind in KINDS:
            words = f"a figure of {kind.__name__}"
            made = kind(self.measured)
            # A kind whose data can't be read ends here; other kinds go on.
            while (drawn := self._try(partial(next, made, None), words)) is not None:
                number = titles[drawn.title] = titles.get(drawn.title, 0) + 1
                again = f"{drawn.title} ({number})"
                figures.append(drawn if number == 1 else replace(drawn, title=again))
        # The first screen's figure is a suite's own if the run had one.
        ranked = [figure for figure in figures if figure.section == s.SUITE]
        for name in _FOREMOST:
            ranked += [f for f in figures if f.name.startswith(name) and f.section != s.LOSS]
        first = next(iter([*ranked, *figures]), None)
        foremost = first and replace(first, height=min(first.height, _FOREMOST_PX))
        # The texts of sections stand above figures and tables.
        makers: tuple[tuple[str, Callable[[SummaryDocument], list[Part | None]]], ...] = (
            (s.GLANCE, lambda summary: [glance(summary, foremost)]),
            (s.VERDICT, verdict),
            (s.SET_UP, set_up),
            (s.FINDINGS, found),
            (s.SUITE, suite),
            (s.NOT_MEASURED, not_measured),
        )
        for title, maker in makers:
            self.sections[title].add(*(self._try(partial(maker, summary), title) or ()))
        if foremost is not None and not self.sections[s.GLANCE].parts:
            self.sections[foremost.section].add(foremost)
        with suppress(OSError, ValueError):
            text = (self.measured.directory / CONFIGURATION).read_text("utf-8")
            title = "configuration.yaml, with every default filled in"  # the file can be run again
            self.sections[s.CONFIGURATION].add(Details(title, text))
        for figure in figures:
            if figure is not first:
                self.sections[figure.section].add(figure)
        self.damage += [one for one in self.measured.damage if one not in self.damage]
        for title, specs in tables.by_section().items():
            for spec in specs:
                table = self._try(partial(spec, summary), f"the table of {spec.name}")
                self.sections[title].add(table)
        self.sections[s.MEANINGS].add(*meanings(self.sections.values()))
        for title, section in self.sections.items():
            section.open = title in _OPEN
        self.sections[s.GLANCE].folds = False
        if summary.get("suite"):  # a suite's rows follow from phases
            self.sections[s.SUITE].open, self.sections[s.RESULTS].open = True, False
        run = summary["run"]
        version = (run.get("versions") or {}).get("switchbench")
        text = render(
            f"{run.get('id', 'unknown')} · {run.get('started', 'unknown time')}",
            self._try(partial(about_what, summary), "the title") or f"Run {run.get('id')}",
            f"Measured with Switchbench {version}, reported with {__version__}. How to cite it: "
            "CITATION.cff. Figures are drawn by Plotly, which is in this file.",
            self.sections.values(),
            self.damage,
        )
        return Report(text, self.damage)

    def _try(self, making: Callable[[], T], what: str) -> T | None:
        """Return the part of the report that `making` makes; None if this fails.

        If the results lack what `making` needs, add a sentence to `damage` and return None.
        """
        try:
            return making()
        except UNREADABLE as error:
            self.damage.append(
                f"{what} can't be shown: the results lack a value that it needs "
                f"({type(error).__name__}: {error})"
            )
            return None


# --- a page: sections of parts, each with a macro of its name in page.html ------------------------


class Words(NamedTuple):
    """Paragraph of a section of the report."""

    text: str
    kind: str = ""


class Sentences(NamedTuple):
    """List of sentences with a title."""

    title: str
    every: Sequence[str]
    mark: str = ""  # mark of the list: bad or warn


class Facts(NamedTuple):
    """List of names with their values."""

    rows: Sequence[tuple[str, str]]


class Details(NamedTuple):
    """Long text that the page hides until its heading is clicked."""

    title: str
    text: str


class Tile(NamedTuple):
    """Number of the first screen; `mood` is good, warn or bad."""

    label: str
    value: str
    text: str
    about: str = ""
    mood: str = ""


class Glance(NamedTuple):
    """First screen of the page: verdict, tiles and one figure."""

    word: str
    text: str
    tiles: Sequence[Tile]
    verdict: str = ""  # PASS, FAIL, INCONCLUSIVE or empty
    sign: str = ""
    figure: Figure | None = None
    page: Mapping[str, Any] | None = None


Part = Words | Sentences | Facts | Details | Glance | Table | Figure


@dataclass
class Section:
    """Section of the page: words, figures and tables below a heading."""

    title: str
    parts: list[Part] = field(default_factory=list)
    folds: bool = True
    open: bool = True

    def add(self, *parts: Part | None) -> None:
        """Add parts to the section; None is skipped."""
        self.parts += [part for part in parts if part is not None]

    @property
    def name(self) -> str:
        """Return the section's anchor."""
        return "section-" + self.title.lower().replace(" ", "-")

    @property
    def anchors(self) -> list[tuple[str, str]]:
        """Return name and title of each figure and table, for the list of contents."""
        return [
            (f"table-{part.name}" if isinstance(part, Table) else part.name, part.title)
            for part in self.parts
            if isinstance(part, Figure) or (isinstance(part, Table) and part.drawn)
        ]

    @property
    def contents(self) -> str:
        """Return the number of the section's figures and tables in words."""
        figures = sum(isinstance(part, Figure) for part in self.parts)
        tables = sum(isinstance(part, Table) for part in self.parts)
        counts = ((figures, "figure"), (tables, "table"))
        return ", ".join(format.of(count, noun) for count, noun in counts if count)


def render(
    what: str,
    heading: str,
    footer: str,
    sections: Iterable[Section],
    damage: Sequence[str] = (),
) -> str:
    """Return the HTML text of a page; sections without parts are left out.

    `what` is in the title and above the heading; `damage` has a sentence for each part that could
    not be shown.
    """
    import jinja2  # imported here, since only reports need it
    from markupsafe import Markup, escape

    shown = [section for section in sections if section.parts]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )

    def prose(text: str) -> Markup:
        """Return a sentence as HTML in which `names` look like typed text."""
        return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))

    blocks: list[tuple[str, bytes]] = []  # data of figures and tables for page.js, and Plotly
    for part in (part for section in shown for part in section.parts):
        found = part.figure if isinstance(part, Glance) else part
        if isinstance(found, Figure):
            layout = {**found.layout, "height": found.height}
            blocks.append((f"data-{found.name}", _json({"data": found.data, "layout": layout})))
        elif isinstance(found, Table) and found.drawn:
            blocks.append((f"data-table-{found.name}", _json(found.data())))
    code = files("plotly").joinpath("package_data/plotly.min.js").read_text("utf-8")
    # A few Chinese letters in strings would make browsers hold and read the whole text twice as
    # wide.
    blocks.append(("plotly", code.encode("ascii", "backslashreplace")))
    environment.filters |= {"prose": prose, "digits": format.digits}
    return environment.from_string(_asset("page.html")).render(
        what=what,
        heading=heading,
        footer=footer,
        damage=damage,
        sections=shown,
        version=__version__,
        advice=WORDS["advice"],
        style=_asset("page.css"),
        script=_asset("table.js") + _asset("page.js"),
        # Data for the page's script: gzip in base64, which no scanner takes for code.
        blocks=[
            (name, base64.b64encode(gzip.compress(data, 6, mtime=0)).decode())
            for name, data in blocks
        ],
    )


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _asset(name: str) -> str:
    return files(__package__).joinpath(f"page/{name}").read_text("utf-8")


def meanings(sections: Iterable[Section]) -> list[Part]:
    """Return the parts that define the columns of all tables.

    A title with several definitions is listed with the table of each.
    """
    found: dict[str, dict[str, str]] = {}
    parts = [part for section in sections for part in section.parts]
    for table in (part for part in parts if isinstance(part, Table) and part.drawn):
        for column in table.columns:
            found.setdefault(column.title, {}).setdefault(column.definition, table.title)
    rows = [
        (title if len(some) == 1 else f"{title} ({table})", words)
        for title, some in sorted(found.items())
        for words, table in some.items()
    ]
    about = "The pointer on a number shows its definition. Formulas: doc/reference/measures.md."
    return [Words(about, "about"), Facts(rows)] if rows else []


# --- the first screen -----------------------------------------------------------------------------


_SIGNS = {"PASS": "✓", "FAIL": "✗", "INCONCLUSIVE": "?"}
_MOODS = {"green": "good", "yellow": "warn", "bold red": "bad", None: ""}
_ABOUT = {
    name: definition(words[1:]) if words.startswith("=") else words
    for name, words in WORDS["tiles"].items()
}


def glance(summary: SummaryDocument, figure: Figure | None = None) -> Glance:
    """Return the report's first screen: the result, and a tile for each further line."""
    result, *lines = screen.lines(summary)
    worst = next((one.text for one in screen.findings(summary)), "")
    tiles = [
        Tile(
            name, line.value, worst if name == "Findings" else line.said, about, _MOODS[line.style]
        )
        for name, about in _ABOUT.items()
        for line in lines
        if line.label == name
    ]
    if verdict := summary.get("verdict"):
        word = verdict["verdict"]
        said = f"{verdict['sentence'].rstrip('.')}. {result.said.rpartition('; ')[2]}."
        return Glance(result.value, said, tiles, word, _SIGNS[word], figure, first_page(summary))
    name = screen.headline(summary) or str(summary["status"]).capitalize()
    said = f"No verdict: no clause is required (expect). {result.said}."
    said = " ".join(filter(None, (screen.performance(summary), said)))
    return Glance(name, said, tiles, figure=figure, page=first_page(summary))


def verdict(summary: SummaryDocument) -> list[Part | None]:
    """Return warnings and scope of the verdict, which the first screen does not show."""
    found = summary.get("verdict")
    if not found:
        return []
    return [
        sentences("Warnings of the verdict", found["warnings"], "warn"),
        Words(f"{found['scope']} Clauses, SHA-256: {found['clauses_sha256']}", "about"),
    ]


# --- the set-up ----------------------------------------------------------------------------------


def set_up(summary: SummaryDocument) -> list[Part | None]:
    """Return the set-up of the run, as needed to repeat it: switch, nodes, versions.

    In a damaged summary `run` may lack entries.
    """
    about: Mapping[str, Any] = summary["run"].get("about") or {}
    rows = [("switch under test", _words(switch)) for switch in about.get("switches", [])]
    rows += [(key, _words(value)) for key, value in about.items() if key != "switches"]
    run, ports = summary["run"], summary["ports"]
    switches = sorted({port["switch"] for port in ports if port["switch"]})
    where = [("switches", ", ".join(switches))] if switches else []
    if lab := run.get("lab"):
        where = [("switch", f"the lab {lab}, on one machine")]
    names = {port["port"] for port in ports}
    networks = sorted({port["network"] for port in ports})
    network = (
        f"{format.of(len(run.get('nodes', [])), 'node')}, {format.of(len(names), 'port')}, "
        f"{'network' if len(networks) == 1 else 'networks'} {', '.join(networks)}"
    )
    machine: Mapping[str, Any] = run.get("machine") or {}
    memory, cpus = machine.get("memory_bytes"), machine.get("cpus")
    words = [machine.get(key) for key in ("host", "system", "cpu")]
    words += [cpus and format.of(cpus, "CPU"), memory and f"{memory / 2**30:.1f} GiB"]
    facts = [
        *where,
        ("network", network),
        ("launched by", _words(run.get("launch"))),
        ("began", _words(run.get("started"))),
        ("took", format.seconds(run.get("elapsed_s"))),
        ("versions", _words(run.get("versions"))),
        ("controller", ", ".join(filter(None, words))),
        ("random seed", _words(run.get("seed"))),
        ("run", _words(run.get("id"))),
        ("rerun", " ".join(run.get("command", []))),
    ]
    return [Facts(rows) if rows else None, Facts(facts)]


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(one)}" for key, one in value.items() if one)
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    return format.UNKNOWN if value is None else str(value)


# --- what was found, and what was not measured ----------------------------------------------------


_TITLES = {"error": ("Errors", "bad"), "warning": ("Warnings", "warn"), "info": ("Info", "")}


def found(summary: SummaryDocument) -> list[Part | None]:
    """Return the findings by severity; the sentences that a finding sums up are folded."""
    every = screen.findings(summary)
    parts: list[Part | None] = []
    for severity, (title, mark) in _TITLES.items():
        some = [one for one in every if one.severity == severity]
        parts.append(sentences(title, [one.text for one in some], mark))
        parts += [
            Details(f"One by one ({len(one.parts):,})", "\n".join(one.parts))
            for one in some
            if len(one.parts) > 1
        ]
    return (
        parts if every else [Words("No findings: no error, no warning, no tester-limited phase.")]
    )


def suite(summary: SummaryDocument) -> list[Part | None]:
    """Return the notes on the run's standard test suite, shown beside the suite's tables."""
    found = screen.suite_of(summary)
    if found is None:
        return []
    notes = [sentences(title, lines) for title, lines, _ in screen.suite_notes(summary)]
    left_out = {f"`{found.name}-{name}`" for name in screen.not_run(summary, found)}
    asked = [
        f"{one.word} ({one.section}): {one.asks}: {one.where}"
        for one in found.statements
        if not any(name in one.where for name in left_out)
    ]
    return [
        Words(
            f"{found.title}: what each table is, and the measures' names in clauses, are in "
            "doc/reference/standards.md."
        ),
        *notes,
        sentences("Deviations from the document", _quoted(found, found.deviations)),
        sentences(
            "Contents that the document's reporting sections require, and their places",
            _quoted(found, asked),
        ),
    ]


def _quoted(found: Suite, lines: Iterable[str]) -> list[str]:
    """Return lines with the backquoted keys of tables and figures replaced by their titles."""
    titles = {f"{found.name}-{each.name}": each.title for each in found.subtests}
    return [
        re.sub("`([^`]+)`", lambda name: f"“{titles.get(name[1], name[1])}”", line)
        for line in lines
    ]


def not_measured(summary: SummaryDocument) -> list[Part | None]:
    """Return the parts of the run that were asked for and not measured, with reasons."""
    absent = [
        f"{host['host']} was left out: {host['reason']}"
        for host in summary["run"].get("excluded_hosts", [])
    ]
    every = (one for entry in summary["trials"] for one in entry["latency"].values() if one)
    # Reasons that differ in numbers alone are listed once.
    alike = by(
        (reason for one in every for reason in one["reasons"].values()),
        lambda reason: re.sub(r"there are [\d,]+", "there are", reason),
    )
    reasons = [
        first + (f", and {len(others):,} more with this reason" if others else "")
        for first, *others in alike.values()
    ]
    parts: list[Part | None] = [
        sentences("", summary["not_measured"], "warn"),
        sentences("Hosts excluded", absent, "warn"),
        sentences("Times not known", reasons, "warn"),
    ]
    return parts if any(parts) else [Words("Everything that was requested was measured.")]


def sentences(title: str, lines: Sequence[str] | None, mark: str = "") -> Sentences | None:
    """Return a titled list of sentences; None without sentences."""
    return Sentences(title, lines, mark) if lines else None


# --- the page as PDF ------------------------------------------------------------------------------


VARIABLE = "SWITCHBENCH_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = (
    "PDF is printed by a browser, and there is none: install Chromium "
    f"(Debian: apt-get install chromium) or name one in {VARIABLE}"
)
_OPTIONS = (
    *("--headless=new", "--disable-gpu", "--disable-extensions", "--no-first-run"),
    *("--disable-background-networking", "--hide-scrollbars"),
    "--virtual-time-budget=600000",  # ms of the page's own clock, which waits for its script
)
_TIMEOUT_S = 300.0


def find_browser() -> str:
    """Return the path of a Chromium browser of this machine.

    ConfigurationError if there is none.
    """
    named = os.environ.get(VARIABLE)
    for name in (named,) if named else NAMES:
        if found := shutil.which(name):
            return found
    raise ConfigurationError(f"{VARIABLE}={named} can't be executed" if named else MISSING)


def write_pdf(page: Path, pdf: Path, program: str) -> None:
    """Print a page with all its tables and figures to a PDF file."""
    if not pdf.resolve().parent.is_dir():
        raise ConfigurationError(f"can't write into {pdf.parent}: there is no such folder")
    # Chromium refuses its sandbox to root, and the page needs none.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with TemporaryDirectory(prefix="switchbench-browser-", ignore_cleanup_errors=True) as profile:
        words = [*_OPTIONS, *sandbox, f"--user-data-dir={profile}", "--no-pdf-header-footer"]
        words += [f"--print-to-pdf={pdf.resolve()}", f"{page.resolve().as_uri()}#paper"]
        try:
            subprocess.run([program, *words], capture_output=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise RunError(f"the browser {program} made no PDF within {_TIMEOUT_S:g} s") from None
        except OSError as error:
            raise RunError(f"the browser {program} can't be run: {error.strerror}") from error
    if not pdf.is_file():
        raise RunError(f"the browser {program} wrote no {pdf}: start it by hand to see why")
