"""JUnit XML: a test case for each rule."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from testing.cadence.findings import Finding
from testing.cadence.show import Outcome

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(outcome: Outcome) -> str:
    """One suite."""
    suite = ElementTree.Element("testsuite", name=_xml(f"onbeat {outcome.command}"))
    broken = {finding.kind for finding in outcome.findings}
    rules = list(dict.fromkeys([*outcome.rules, *sorted(broken)]))
    for rule in rules:
        case = _case(suite, outcome, rule)
        for finding in outcome.findings:
            if finding.kind == rule:
                _failure(case, finding)
    for skip in outcome.skipped:
        case = _case(suite, outcome, skip.rule)
        ElementTree.SubElement(case, "skipped", message=_xml(skip.reason))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(broken)))
    suite.set("errors", "0")
    suite.set("skipped", str(len(outcome.skipped)))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    body = ElementTree.tostring(suites, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{body}\n"


def _case(
    suite: ElementTree.Element, outcome: Outcome, rule: str
) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=_xml(f"onbeat.{outcome.run}"), name=_xml(rule)
    )


def _failure(case: ElementTree.Element, finding: Finding) -> None:
    failure = ElementTree.SubElement(
        case, "failure", type=finding.kind, message=_xml(finding.message)
    )
    failure.text = _xml(str(finding.violation()))
    if finding.spot.path and "file" not in case.attrib:
        case.set("file", _xml(finding.spot.path))
        case.set("line", str(finding.spot.place))


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
