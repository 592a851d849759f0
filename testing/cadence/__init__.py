"""What was logged when: events, reports, contracts, readers. No TensorFlow."""

from testing.cadence.events import KINDS as KINDS
from testing.cadence.events import Event as Event
from testing.cadence.events import Source as Source
from testing.cadence.report import Report as Report
from testing.cadence.report import Skip as Skip
from testing.cadence.report import Violation as Violation
