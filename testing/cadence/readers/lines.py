"""Events in one line of text: what trainers print.

Two forms are known, each behind any prefix a logger or a notebook writes:

    [step=200] loss = 1.5.                       TF-Agents' bandit trainer
    step = 200: loss = 1.5, accuracy = 90%       its tutorials, and many others

and the records of `metric_utils.log_metrics`, a line that holds nothing but
`Step = 200`, followed by indented lines `name = value`.
"""

from __future__ import annotations

import dataclasses
import re

from testing.cadence.readers import values

BRACKET = re.compile(r"\[step=(\d{1,19})\] (.{1,200}?) = (.*)", re.S)
_STEP_WORD = r"(?:global[_ ]?|train(?:ing)?[_ ]?)?step"
_STEP_NAME = re.compile(_STEP_WORD, re.I)
_STEP = re.compile(
    rf"(?<![\w./-]){_STEP_WORD}"
    r"\s{0,3}[=:]?\s{0,3}(\d{1,19}(?:\.0{1,6})?)(?=[\s,:;)\]}|/]|\.(?!\d)|\\n|$)",
    re.I,
)
_PAIR = re.compile(
    r"(?<![\w./-])([A-Za-z_][\w./-]{0,100}(?: [A-Za-z_(][\w./()-]{0,100}){0,4})"
    r"\s{0,3}([=:])\s{0,3}"
    rf"((?:tf\.Tensor\(|tensor\(|array\(|np\.\w{{1,20}}\()?(?:{values.SCALAR})%?)"
    r"(?=[\s,;:)\]}\"'|]|\.(?!\d)|\\n|$)(?!:\d)"
)
_ALONE = re.compile(r"\s*\Z")
_CONTINUED = re.compile(r"\s{1,40}([^\s=][^=]{0,200}?) = (.*)", re.S)
# absl's prefix, and glog's with a year.
_GLOG = re.compile(
    r"[IWEF](?:\d{4}|\d{8}) \d\d:\d\d:\d\d\.\d{6} {1,5}(\d{1,23}) "
    r"(?:[^\s\]]{1,200}\])?",
    re.A,
)
# mpirun, torchrun and what people write by hand, Ray. `scan` relies on it that
# none of them begins with a letter or a digit, unless it holds an equals sign.
_LAUNCHER = re.compile(
    r"\s{0,40}(?:\[(\d{1,6},\d{1,6})\]<\w{1,10}>:"
    r"|\[((?:rank|default|worker|process)[ _:=#]?\d{1,6})\]:?"
    r"|\(([^()]{0,80}pid=\d{1,10})[^()]{0,80}\)"
    r"|((?:local_|global_)?(?:rank|worker|process|pid)=\d{1,10})(?!\w)[,:]?)\s{0,40}",
    re.I,
)
_WORD = re.compile(r"\w+")


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """The events of one line.

    Attributes:
      prefix: what stands before them.
      step: their step.
      pairs: name and text of each value; empty for a line that only announces
        the step of the lines to come.
    """

    prefix: str
    step: int
    pairs: tuple[tuple[str, str], ...]


def parse(line: str) -> Found | None:
    """The events of `line`, given without its line end; None without any."""
    return _bracket(line) or _free(line)


def _bracket(line: str) -> Found | None:
    found = BRACKET.search(line)
    if not found or int(found[1]) > values.LARGEST_STEP:
        return None
    value = found[3].rstrip().removesuffix(".")
    return Found(line[: found.start()], int(found[1]), ((found[2].strip(), value),))


def _free(line: str) -> Found | None:
    found = _STEP.search(line)
    step = values.step(found[1]) if found else None
    if not found or step is None:
        return None
    before = _PAIR.finditer(line, _head(line), found.start())
    matches = [pair for pair in before if pair[2] == "="]
    matches += _PAIR.finditer(line, found.end())
    matches = [pair for pair in matches if not _STEP_NAME.fullmatch(pair[1])]
    pairs = tuple((pair[1], pair[3]) for pair in matches)
    if not pairs and not _ALONE.match(line, found.end()):
        return None
    start = min([found.start(), *(pair.start() for pair in matches)])
    return Found(line[:start], step, pairs)


def _head(line: str) -> int:
    """Where the text of a logger's or launcher's own ends."""
    launcher = _LAUNCHER.match(line)
    start = launcher.end() if launcher else 0
    glog = _GLOG.match(line, start)
    return glog.end() if glog else start


def continued(line: str) -> tuple[str, str] | None:
    """Name and text of the value in a line that continues a record."""
    found = _CONTINUED.match(line)
    return (found[1], found[2].rstrip()) if found else None


def writer(prefix: str) -> str:
    """The process, thread or rank a prefix names; empty when it names none."""
    launcher = _LAUNCHER.match(prefix)
    if launcher:
        return next(text for text in launcher.groups() if text)
    glog = _GLOG.match(prefix)
    return glog[1] if glog else ""


def doubled(line: str, prefix: str, before: str, prefix_before: str) -> bool:
    """Whether a line with the events of the line `before` is that line again.

    True when nothing differs, or when two handlers wrote it: prefixes of two
    shapes that do not name two writers. Equal shapes with other digits are two
    calls of the logger.
    """
    if line == before:
        return True
    writers = {writer(prefix), writer(prefix_before)} - {""}
    return len(writers) < 2 and shape(prefix) != shape(prefix_before)


def shape(prefix: str) -> str:
    """A prefix without its words: what its format leaves constant."""
    return _WORD.sub("x", prefix)
