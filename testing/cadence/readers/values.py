"""Numbers as logs write them."""

from __future__ import annotations

import re

LARGEST_STEP = 2**63 - 1
LONGEST_TEXT = 200
# Repeats are bounded: no line, however odd, makes the expression run away.
NUMBER = r"[-+]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][-+]?\d{1,6})?"
SPECIAL = r"[-+]?(?:nan|inf(?:inity)?)\b"
SCALAR = rf"(?i:{SPECIAL})|{NUMBER}"
# What surrounds the number of a printed 0-d tensor or array.
_WRAPPED = re.compile(
    r"(?:tf\.Tensor|tensor|array|np\.\w{1,20}|<tf\.\w{1,20}:[^<>]{0,200}numpy=)"
    rf"?[(\[]{{0,3}}\s{{0,3}}({SCALAR})(?=[,\])>\s%]|$)([^\d]?)"
)
_TENSOR_TAIL = re.compile(r"[)\]>]{0,3}|,\s*(?:shape|dtype|device|grad_fn)\b.*", re.S)


def number(text: str) -> float | None:
    """The number `text` stands for; None when it is none.

    Understands what `float` does without `_`, and percent (`95%` is 95).
    """
    text = text.strip()
    if "_" in text:
        return None
    try:
        return float(text.removesuffix("%"))
    except ValueError:
        return None


def scalar(text: str) -> float | str:
    """The number in `text`, also out of a printed 0-d tensor; else its beginning."""
    value = number(text)
    if value is not None:
        return value
    found = _WRAPPED.match(text)
    if found and _TENSOR_TAIL.fullmatch(text[found.end(1) :]):
        return float(found.group(1))
    return text[:LONGEST_TEXT]


def step(text: str) -> int | None:
    """The step `text` stands for (`100`, `100.0`, `1e3`); None when it is none."""
    try:
        value = int(text) if text.isdigit() else float(text)
    except ValueError:
        return None
    if value != value or abs(value) > LARGEST_STEP or value != int(value):
        return None
    return int(value)
