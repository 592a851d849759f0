"""Tables and strips for a terminal."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from testing.cadence.show import Outcome, clean, text
from testing.cadence.show.strip import OFF, Axis, plain, strip
from testing.cadence.survey.beats import Beat
from testing.cadence.survey.marks import marks_of

_LEAST = 12
_SHORTEST, _LONGEST = 10, 40


def show(outcome: Outcome, stream: TextIO) -> None:
    """Prints the outcome of `describe` in colour."""
    width = shutil.get_terminal_size().columns
    console = Console(file=stream, width=width, highlight=False)
    console.print(Text(text.headline(outcome), style=_style(outcome)))
    if outcome.series:
        console.print()
        console.print(_table(outcome, console))
    for paragraph in text.findings(outcome):
        console.print()
        console.print(_paragraph(paragraph), soft_wrap=True)


def _style(outcome: Outcome) -> str:
    return "bold red" if outcome.findings else "bold green"


def _table(outcome: Outcome, console: Console) -> Table:
    rows = [text.row(beat) for beat in outcome.series]
    names, *columns = zip(text.HEADINGS, *rows, strict=True)
    numbers = sum(max(map(len, column)) + 2 for column in columns)
    most = max(_SHORTEST, min(_LONGEST, console.width - numbers - 2))
    used = numbers + min(most, max(map(len, names))) + 2
    axis = Axis.over(outcome.series, max(_LEAST, console.width - used))
    room = console.width - used >= _LEAST
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("series", max_width=most, overflow="ellipsis", no_wrap=True)
    for heading in text.HEADINGS[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    if room:
        table.add_column(f"{axis.first} … {axis.last}", no_wrap=True)
    for beat, cells in zip(outcome.series, rows, strict=True):
        table.add_row(*_cells(cells), *([_strip(outcome, beat, axis)] if room else []))
    return table


def _cells(cells: tuple[str, ...]) -> list[Text]:
    counts = [Text(cell) for cell in cells[:5]]
    return [*counts, *(Text(c, style="" if c == "0" else "red") for c in cells[5:])]


def _strip(outcome: Outcome, beat: Beat, axis: Axis) -> Text:
    steps = [mark.step for mark in marks_of(beat, outcome.findings)]
    shown = Text(style="cyan")
    for char in strip(beat, axis, steps):
        drawn = char if _unicode() else plain(char)
        shown.append(drawn, style="bold red" if char == OFF else None)
    return shown


def _unicode() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return encoding.lower().replace("-", "").startswith("utf")


def _paragraph(paragraph: str) -> Text:
    head, _, rest = paragraph.partition("\n")
    shown = Text(clean(head), style="bold red")
    if rest:
        shown.append("\n" + rest, style="not bold default")
    return shown
