"""A picture of the beat: every series on one step axis, what is off marked."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.findings import Finding
from testing.cadence.show import clean
from testing.cadence.survey import Survey
from testing.cadence.survey.beats import Beat
from testing.cadence.survey.marks import marks_of

SUFFIXES = (".svg", ".png", ".pdf")
# More series than this do not fit; those in which something is off come first.
MOST = 120
_WIDTH = 11.0  # inches
_COLUMNS = 1000  # what the eye can tell apart across the picture
_CLOSE = 8  # values nearer than this many columns are drawn as one band
_STRETCH = 4  # fewer close values stay single
_LONGEST_NAME = 34


class PlotError(ValueError):
    """No picture can be drawn. Its text is one line for the user."""


@dataclasses.dataclass(frozen=True)
class Theme:
    """Colours of a picture."""

    paper: str
    ink: str
    muted: str
    grid: str
    stripe: str
    beat: str


THEMES = {
    "light": Theme("#ffffff", "#1b2330", "#667085", "#e4e7ec", "#f6f8fa", "#2f6db5"),
    "dark": Theme("#0f151e", "#e6eaf0", "#94a0b3", "#273142", "#151d29", "#69aef2"),
}
# Shape, and colour on light and on dark paper: told apart without colour too.
_MARKS = {
    "gap": ("o", "#d1480f", "#ff8a4c"),
    "missing-head": (">", "#d1480f", "#ff8a4c"),
    "missing-tail": ("<", "#d1480f", "#ff8a4c"),
    "step-back": ("v", "#b4257e", "#f472b6"),
    "duplicate-step": ("D", "#8a5a00", "#facc15"),
    "double-line": ("s", "#8a5a00", "#facc15"),
    "frozen-step": ("P", "#b4257e", "#f472b6"),
    "non-finite": ("X", "#b91c1c", "#f87171"),
    "declared-cadence": ("*", "#b4257e", "#f472b6"),
}
_OTHER = ("o", "#d1480f", "#ff8a4c")
_ABREAST = 6  # entries of the legend in one line


def check(path: str) -> None:
    """Raises PlotError if nothing can be drawn to `path`."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        allowed = ", ".join(SUFFIXES)
        raise PlotError(f"--output is {path!r}. Allowed: a name ending in {allowed}.")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise PlotError(f"--output is {path!r}, but there is no directory {folder!r}.")
    if importlib.util.find_spec("matplotlib") is None:
        raise PlotError("plot needs matplotlib: pip install 'onbeat[plot]'.")


def draw(
    survey: Survey, findings: Sequence[Finding], path: str, theme: str = "light"
) -> None:
    """Draws the series of `survey` to a .svg, .png or .pdf file.

    Args:
      survey: a closed survey.
      findings: what to mark.
      path: the file to write.
      theme: `light` or `dark`.

    Raises:
      PlotError: `path` has another suffix, there is no series to draw, or
        matplotlib is missing.
    """
    check(path)
    if not survey.series:
        raise PlotError(f"{survey.root}: there is no series to draw.")
    import matplotlib

    # A fixed salt and no date: the same run gives the same picture.
    style = {"svg.hashsalt": "onbeat", "font.size": 9}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        # A name in letters that the font lacks is drawn with boxes.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = _Picture(survey, findings, theme).figure
        suffix = os.path.splitext(path)[1].lower()
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        figure.savefig(path, dpi=150, metadata=metadata.get(suffix))


class _Picture:
    """One figure while it is drawn."""

    def __init__(self, survey: Survey, findings: Sequence[Finding], theme: str) -> None:
        from matplotlib.figure import Figure

        self._survey = survey
        self._findings = findings
        self._dark = theme == "dark"
        self._theme = THEMES[theme]
        self._beats = _chosen(survey.series, findings)
        self._first = min(beat.first for beat in self._beats)
        self._last = max(beat.track.high for beat in self._beats)
        self._lowest = min(int(b.track.cells.starts[0]) for b in self._beats)
        row = _row_height(len(self._beats))
        kinds = {finding.kind for finding in findings} & set(_MARKS)
        self._top = 0.85
        self._bottom = 0.65 + 0.25 * -(-len(kinds) // _ABREAST)
        self._height = self._top + row * len(self._beats) + self._bottom
        self._row = row
        self.figure = Figure(
            figsize=(_WIDTH, self._height), facecolor=self._theme.paper
        )
        self._kinds: dict[str, int] = {}
        self._draw()

    def _draw(self) -> None:
        self._axes = self._make_axes()
        for number, beat in enumerate(self._beats):
            self._stripe(number)
            self._beat(number, beat)
            self._label(number, beat)
        for number, beat in enumerate(self._beats):
            self._mark(number, beat)
        self._title()
        self._legend()

    def _make_axes(self) -> Any:
        names = [_short(beat.name) for beat in self._beats]
        left = 0.35 + 0.078 * max(map(len, names))
        right = 0.35 + 0.072 * max(len(_summary(beat)) for beat in self._beats)
        axes = self.figure.add_axes(
            (
                left / _WIDTH,
                self._bottom / self._height,
                1 - (left + right) / _WIDTH,
                1 - (self._top + self._bottom) / self._height,
            )
        )
        theme = self._theme
        axes.set_facecolor(theme.paper)
        span = max(self._last - self._lowest, 1)
        axes.set_xlim(self._lowest - 0.015 * span, self._last + 0.015 * span)
        axes.set_ylim(len(self._beats) - 0.5, -0.5)
        axes.set_yticks([])
        axes.grid(axis="x", color=theme.grid, linewidth=0.8)
        axes.set_axisbelow(True)
        for side in ("top", "left", "right"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(theme.muted)
        axes.tick_params(axis="x", colors=theme.muted, labelsize=9, length=3)
        axes.set_xlabel("step", color=theme.muted, fontsize=9)
        self._number_steps(axes)
        return axes

    def _number_steps(self, axes: Any) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))

    def _stripe(self, number: int) -> None:
        if number % 2 == 0 and len(self._beats) > 2:
            self._axes.axhspan(
                number - 0.5, number + 0.5, color=self._theme.stripe, zorder=0, lw=0
            )

    def _beat(self, number: int, beat: Beat) -> None:
        span = max(self._last - self._lowest, 1)
        bands, singles = _bands(beat, span / _COLUMNS)
        if bands:
            self._axes.broken_barh(
                bands, (number - 0.27, 0.54), color=self._theme.beat, lw=0, zorder=3
            )
        if len(singles):
            self._axes.vlines(
                singles,
                number - 0.27,
                number + 0.27,
                color=self._theme.beat,
                linewidth=1.6,
                zorder=3,
            )

    def _label(self, number: int, beat: Beat) -> None:
        size = 9 if self._row >= 0.3 else 7.5
        common = {
            "transform": self._axes.get_yaxis_transform(),
            "va": "center",
            "parse_math": False,
        }
        self._axes.text(
            -0.008,
            number,
            _short(beat.name),
            ha="right",
            color=self._warning(beat) or self._theme.ink,
            weight="bold" if self._warning(beat) else "normal",
            fontsize=size,
            **common,
        )
        self._axes.text(
            1.008,
            number,
            _summary(beat),
            ha="left",
            color=self._theme.muted,
            fontsize=size,
            **common,
        )

    def _warning(self, beat: Beat) -> str:
        """The colour of the first thing that is off in the series, if any."""
        for finding in self._findings:
            if finding.series == beat.name:
                return self._colour(finding.kind)
        return ""

    def _colour(self, kind: str) -> str:
        return _MARKS.get(kind, _OTHER)[2 if self._dark else 1]

    def _mark(self, number: int, beat: Beat) -> None:
        for finding in self._findings:
            if finding.series == beat.name and finding.kind in _MARKS:
                self._kinds[finding.kind] = (
                    self._kinds.get(finding.kind, 0) + finding.count
                )
                self._missing_end(number, beat, finding)
        steps: dict[str, list[int]] = {}
        for mark in marks_of(beat, self._findings):
            if mark.kind in _MARKS:
                steps.setdefault(mark.kind, []).append(mark.step)
        for kind, places in steps.items():
            self._axes.scatter(
                places,
                [number] * len(places),
                zorder=5,
                clip_on=False,
                **self._style(kind),
            )

    def _missing_end(self, number: int, beat: Beat, finding: Finding) -> None:
        """A dotted line where a head or tail should be."""
        beats = (beat.every or 1) * finding.count
        ends = {
            "missing-tail": (beat.last, beat.last + beats),
            "missing-head": (
                beat.first - (beat.every or 1) * finding.count,
                beat.first,
            ),
        }
        if finding.kind in ends:
            style = {"color": self._colour(finding.kind), "ls": ":", "lw": 1.6}
            self._axes.hlines(number, *ends[finding.kind], zorder=2, **style)

    def _style(self, kind: str) -> dict[str, Any]:
        return {
            "marker": _MARKS[kind][0],
            "s": 75 if self._row >= 0.3 else 52,
            "color": self._colour(kind),
            "edgecolors": self._theme.paper,
            "linewidths": 1.6,
        }

    def _title(self) -> None:
        run = clean(os.path.basename(os.path.normpath(self._survey.root))) or "run"
        self._head(run, 0.30, 13, self._theme.ink, "bold")
        self._head(self._subtitle(), 0.56, 9, self._theme.muted, "normal")

    def _head(
        self, text: str, inches: float, size: int, colour: str, weight: str
    ) -> None:
        self.figure.text(
            0.25 / _WIDTH,
            1 - inches / self._height,
            text,
            color=colour,
            fontsize=size,
            weight=weight,
            va="center",
            parse_math=False,
        )

    def _subtitle(self) -> str:
        shown, total = len(self._beats), len(self._survey.series)
        series = f"{total:,} series" + (f" ({shown} drawn)" if shown < total else "")
        steps = f"steps {self._first:,} to {self._last:,}"
        off = sorted({finding.kind for finding in self._findings})
        state = f"off: {', '.join(off)}" if off else "in order"
        return f"{series}, {self._survey.events:,} values, {steps}; {state}"

    def _legend(self) -> None:
        if not self._kinds:
            return
        from matplotlib.lines import Line2D

        handles = []
        for kind, count in self._kinds.items():
            style = {"marker": _MARKS[kind][0], "color": self._colour(kind)}
            label = f"{kind} ({count:,})"
            handles.append(Line2D([], [], lw=0, ms=7, label=label, **style))
        legend = self.figure.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0.2 / _WIDTH, 0.08 / self._height),
            ncols=min(len(handles), _ABREAST),
            frameon=False,
            fontsize=9,
            handletextpad=0.2,
        )
        for text in legend.get_texts():
            text.set_color(self._theme.ink)


def _chosen(series: Sequence[Beat], findings: Sequence[Finding]) -> list[Beat]:
    """The series to draw, in order; if too many, those that are off first."""
    off = {finding.series for finding in findings}
    ranked = sorted(range(len(series)), key=lambda i: series[i].name not in off)
    return [series[i] for i in sorted(ranked[:MOST])]


def _row_height(rows: int) -> float:
    if rows <= 6:
        return 0.52
    return 0.34 if rows <= 16 else 0.23


def _short(name: str) -> str:
    """A name that fits, with the middle left out if it is long."""
    name = clean(name)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME // 2 - 1]}…{name[-_LONGEST_NAME // 2 :]}"


def _summary(beat: Beat) -> str:
    if beat.count == 1:
        return "once"
    every = "irregular" if beat.every is None else f"every {beat.every:,}"
    return f"{beat.count:,} values, {every}"


def _bands(beat: Beat, column: float) -> tuple[list[tuple[float, float]], Array]:
    """Start and width of each stretch of close values, and the single ones."""
    starts = beat.track.cells.starts
    # Cells wider than a step hide what lies between: neighbours count as close.
    cell = beat.track.cells.width
    apart = np.diff(starts) > max(_CLOSE * column, cell if cell > 1 else 0)
    pieces = np.split(starts, np.flatnonzero(apart) + 1)
    long = [piece for piece in pieces if len(piece) >= _STRETCH]
    bands = [(float(p[0]) - column, float(p[-1] - p[0]) + 2 * column) for p in long]
    rest = [piece for piece in pieces if len(piece) < _STRETCH]
    return bands, np.concatenate(rest) if rest else np.empty(0)
