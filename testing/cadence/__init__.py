"""What was logged when: events, cadences, reports, readers. No TensorFlow.

Names load when they are asked for, so that the command line starts at once.
"""

from __future__ import annotations

import importlib

# As `typing.TYPE_CHECKING`; importing typing would double the start-up time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from testing.cadence.contract import Cadence as Cadence
    from testing.cadence.contract import CadenceError as CadenceError
    from testing.cadence.contract import Order as Order
    from testing.cadence.contract import Series as Series
    from testing.cadence.events import KINDS as KINDS
    from testing.cadence.events import Event as Event
    from testing.cadence.events import Source as Source
    from testing.cadence.findings import IRREGULARITIES as IRREGULARITIES
    from testing.cadence.findings import Finding as Finding
    from testing.cadence.readers import UnreadableRun as UnreadableRun
    from testing.cadence.readers import read as read
    from testing.cadence.recording import Recording as Recording
    from testing.cadence.recording import record_cadence as record_cadence
    from testing.cadence.report import Report as Report
    from testing.cadence.report import Skip as Skip
    from testing.cadence.report import Violation as Violation
    from testing.cadence.survey import Survey as Survey

_HOMES = {
    "contract": ("Cadence", "CadenceError", "Order", "Series"),
    "events": ("KINDS", "Event", "Source"),
    "findings": ("IRREGULARITIES", "Finding"),
    "readers": ("UnreadableRun", "read"),
    "recording": ("Recording", "record_cadence"),
    "report": ("Report", "Skip", "Violation"),
    "survey": ("Survey",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
