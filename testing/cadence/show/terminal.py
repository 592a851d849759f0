"""Tables and strips for a terminal."""

from __future__ import annotations

import shutil
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from testing.cadence.show import Outcome, clean, text
from testing.cadence.show.strip import OFF, plain, strip
from testing.cadence.survey.beats import Beat
from testing.cadence.survey.marks import marks_of

_LEAST = 12


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
    first = min(beat.first for beat in outcome.series)
    last = max(beat.track.high for beat in outcome.series)
    rows = [text.row(beat) for beat in outcome.series]
    columns = zip(text.HEADINGS, *rows, strict=True)
    used = sum(min(40, max(map(len, column))) + 2 for column in columns)
    width = console.width - used
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("series", max_width=40, overflow="ellipsis", no_wrap=True)
    for heading in text.HEADINGS[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    if width >= _LEAST:
        table.add_column(f"{first} … {last}", no_wrap=True)
    for beat, cells in zip(outcome.series, rows, strict=True):
        strips = [_strip(outcome, beat, first, last, width)] if width >= _LEAST else []
        table.add_row(*_cells(cells), *strips)
    return table


def _cells(cells: tuple[str, ...]) -> list[Text]:
    counts = [Text(cell) for cell in cells[:5]]
    return [*counts, *(Text(c, style="" if c == "0" else "red") for c in cells[5:])]


def _strip(outcome: Outcome, beat: Beat, first: int, last: int, width: int) -> Text:
    steps = [mark.step for mark in marks_of(beat, outcome.findings)]
    drawn = strip(beat, first, last, width, steps)
    shown = Text(style="cyan")
    for char in drawn:
        shown.append(char, style="bold red" if char == OFF else None)
    if not _unicode():
        shown.plain = plain(shown.plain)
    return shown


def _unicode() -> bool:
    import sys

    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return encoding.lower().replace("-", "").startswith("utf")


def _paragraph(paragraph: str) -> Text:
    head, _, rest = paragraph.partition("\n")
    shown = Text(clean(head), style="bold red")
    if rest:
        shown.append("\n" + rest, style="not bold default")
    return shown
