# SPDX-License-Identifier: BSD-3-Clause
"""What the drawer makes of a specification of a figure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from switchbench.render.report.chart import ChartAxis, ChartSpec, Panel, Trace, unpacked

LINE = ChartSpec(
    "name", "a title", "What it is.", "Section", "line", ChartAxis("Nodes", "ranks"),
    ChartAxis("Payload, {unit}", "mean"), "{ranks:d} nodes of {label}: {mean} {unit} ({name})",
)  # fmt: skip
COLUMNS = {"ranks": [2, 4], "mean": np.array([1.0, np.nan]), "name": ["a", "b"]}


def drawn(spec: ChartSpec, *traces: Trace, **panel: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first trace, and the layout."""
    figure = spec.draw(Panel("of all", traces, unit="Mbit/s", **panel))
    assert (figure.name, figure.title) == ("name", "A title, of all")
    return figure.data[0], figure.layout


def test_a_line_with_its_hover() -> None:
    trace, layout = drawn(LINE, Trace("tcp", COLUMNS))
    assert (trace["type"], trace["mode"]) == ("scatter", "lines+markers")
    assert (trace["x"], trace["y"]) == ([2, 4], [1.0, None])
    assert trace["customdata"] == [["a"], ["b"]]
    assert trace["hovertemplate"] == ("%{x:d} nodes of tcp: %{y:,.4~r} Mbit/s (%{customdata[0]})")
    assert layout["yaxis"]["title"]["text"] == "Payload, Mbit/s"
    assert layout["showlegend"] is False


def test_bars_stand_beside_their_names() -> None:
    spec = replace(
        LINE, mark="bars", x=ChartAxis("", "mean"), y=ChartAxis(column="name", kind="names"),
        spread=("low", "high"), values="auto",
    )  # fmt: skip
    spread = {"low": np.array([0.5, 0.0]), "high": np.array([3.0, 0.0])}
    other = Trace("udp", {"mean": [1.0], "name": ["c"], "ranks": [1]} | spread)
    trace, layout = drawn(spec, Trace("tcp", COLUMNS | spread), replace(other, style=1))
    assert layout["yaxis"]["categoryarray"] == ["a", "b", "c"]
    assert layout["showlegend"] is True
    assert trace["text"] == ["1.000", "-"]
    assert unpacked(trace["error_x"]["array"])[0] == 2.0
    assert unpacked(trace["error_x"]["arrayminus"])[0] == 0.5


@pytest.mark.parametrize(("style", "dash"), [(0, "solid"), (3, "dashdot")])
def test_a_thin_line_has_the_style_of_the_one_beside_it(style: int, dash: str) -> None:
    trace, _ = drawn(LINE, Trace("tcp", COLUMNS, thin=True, style=style, shape="hv"))
    assert (trace["line"]["dash"], trace["line"]["width"]) == (dash, 1)
    assert trace["line"]["shape"] == "hv"
    assert trace["marker"]["symbol"].endswith("-open")


def test_what_has_no_value_is_no_key() -> None:
    """Plotly takes a marker of null for one, and draws nothing."""
    trace, _ = drawn(LINE, Trace("tcp", COLUMNS, more={"marker": None, "opacity": 0.5}))
    assert "marker" not in trace
    assert trace["opacity"] == 0.5


def test_sizes_have_ticks_that_people_know() -> None:
    spec = replace(LINE, x=ChartAxis("Message size", "size", "sizes"), hover="{size}: {mean}")
    _, layout = drawn(spec, Trace("tcp", {"size": [1024, 65536], "mean": [1.0, 2.0]}))
    assert layout["xaxis"]["ticktext"] == ["1 KiB", "4 KiB", "16 KiB", "64 KiB"]
