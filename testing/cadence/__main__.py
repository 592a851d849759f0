"""onbeat: reads a training run, says its beat, catches what is off."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

# As `typing.TYPE_CHECKING`; importing typing would double the start-up time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

KEPT, VIOLATED, UNREADABLE = 0, 1, 2
FORMATS = ("text", "json", "github", "junit")
_EXIT = "Exit status: 0 nothing is off, 1 something is, 2 the run could not be read."
_ABOUT = """\
Reads what a training run logged: text logs, TensorBoard event files,
stable-baselines3 and Lightning tables, Hugging Face states, JSON lines."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(UNREADABLE, f"{self.prog}: {message}. See {self.prog} --help.\n")


def _help(prog: str) -> argparse.HelpFormatter:
    """Keeps the lines of examples. Knowing the width spares an import."""
    return argparse.RawDescriptionHelpFormatter(prog, width=min(_columns(), 100))


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        pass
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    arguments = _parser().parse_args(argv)
    from testing.cadence import commands

    try:
        return commands.run(arguments)
    except BrokenPipeError:
        # Whoever read the output has closed it; that is no error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return KEPT
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = _new(_Parser, "onbeat", _ABOUT, _EXAMPLES[""])
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", parser_class=_Parser
    )
    for name, (about, add) in _COMMANDS.items():
        made = commands.add_parser(
            name,
            help=about[0].lower() + about[1:].rstrip("."),
            description=about,
            epilog=f"{_EXIT}\n\n{_EXAMPLES[name]}",
            formatter_class=_help,
        )
        add(made)
    return parser


def _new(
    kind: type[argparse.ArgumentParser], name: str, about: str, examples: str
) -> argparse.ArgumentParser:
    return kind(
        prog=name,
        description=about,
        epilog=f"{_EXIT}\n\n{examples}",
        formatter_class=_help,
    )


def _describe(parser: argparse.ArgumentParser) -> None:
    _run(parser)
    _output(parser)


def _record(parser: argparse.ArgumentParser) -> None:
    _run(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        help="the TOML file to write (default: standard output)",
    )


def _check(parser: argparse.ArgumentParser) -> None:
    _run(parser)
    parser.add_argument(
        "--against", metavar="FILE", help="the cadence, a TOML file of 'onbeat record'"
    )
    bandit = parser.add_argument_group("a TF-Agents bandit trainer, without a file")
    bandit.add_argument(
        "--training-loops", type=_number(0), metavar="N", help="loops of the run"
    )
    bandit.add_argument(
        "--async-steps-per-loop",
        type=_number(1),
        metavar="A",
        help="driver runs, and train steps, per loop (default: 1)",
    )
    bandit.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="a metric that must be logged; may be repeated",
    )
    _output(parser)


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a file or a directory")
    parser.add_argument("other", metavar="RUN", help="what to compare it with")
    _pattern(parser)
    _output(parser)


def _plot(parser: argparse.ArgumentParser) -> None:
    _run(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="the picture to write: .svg, .png or .pdf",
    )
    parser.add_argument(
        "--theme", choices=("light", "dark"), default="light", help="default: light"
    )


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", metavar="RUN", help="a file, a directory, or - for standard input"
    )
    parser.add_argument(
        "more",
        metavar="FILE",
        nargs="*",
        help="logs of the other processes of this run, put in order by time",
    )
    _pattern(parser)
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="KIND",
        help="an irregularity not to look for, such as non-finite; may be repeated",
    )


def _pattern(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pattern",
        metavar="REGEX",
        help="finds the events of a text file: groups step, value and perhaps name",
    )


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="default: text"
    )


def _number(least: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no integer of at least {least}"
            )
        return value

    return convert


_COMMANDS = {
    "describe": ("Lists the series of a run and what is off in it.", _describe),
    "record": ("Writes the cadence of a run to a TOML file.", _record),
    "check": ("Compares a run with a cadence and reports what is off.", _check),
    "diff": ("Compares the beats of two runs.", _diff),
    "plot": ("Draws the beat of every series of a run.", _plot),
}
_EXAMPLES = {
    "": """\
examples:
  onbeat describe train.log
  onbeat check runs/today --against cadence.toml""",
    "describe": """\
examples:
  onbeat describe train.log
  onbeat describe runs/today --format json""",
    "record": """\
examples:
  onbeat record train.log -o cadence.toml
  onbeat record train.log --pattern 'at (?P<step>\\d+), loss (?P<value>\\S+)'""",
    "check": """\
examples:
  onbeat check train.log --against cadence.toml --format github
  onbeat check train.log --training-loops 5 --async-steps-per-loop 4 \\
      --metric RegretMetric""",
    "diff": """\
examples:
  onbeat diff runs/yesterday runs/today
  onbeat diff before.log after.log --format json""",
    "plot": """\
examples:
  onbeat plot train.log -o beat.svg
  onbeat plot runs/today -o beat.png --theme dark""",
}

if __name__ == "__main__":
    sys.exit(main())
