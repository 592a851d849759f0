"""The runner of contracts: every rule tried, every violation told."""

import pytest

import testing.contracts
from testing.contracts import ContractError
from testing.contracts._rules import Rulebook, broken, equal, not_exercised

CONTRACT = {
    "kept": "It is kept.",
    "broken": "It is not.",
    "raising": "It does not raise.",
    "skipped": "It cannot be tried.",
}
RULES = Rulebook(CONTRACT)


@RULES.check("kept")
def _kept(subject):
    equal(1, 1)


@RULES.check("broken")
def _broken(subject):
    equal([1], [2], "place", "cure")


@RULES.check("raising")
def _raising(subject):
    subject.no_such_thing()


@RULES.check("skipped")
def _skipped(subject):
    not_exercised("no such part")


def test_reports_all_rules_at_once():
    report = RULES.run(object(), "thing", raises=False)
    assert report.broken == ("broken", "raising")
    assert report.passed == ("kept",)
    assert [str(skip) for skip in report.skipped] == ["skipped: no such part"]
    first, second = report.violations
    assert str(first) == (
        "broken: It is not.\n"
        "  expected  [1]\n  seen      [2]\n  where     place\n  hint      cure"
    )
    assert second.expected == "no error"
    assert second.seen.startswith("AttributeError: 'object' object has no attribute")
    assert "test_rules.py:" in second.where


def test_raises_with_all_violations():
    with pytest.raises(ContractError, match="thing: 2 rules broken") as caught:
        RULES.run(object(), "thing")
    assert caught.value.report.broken == ("broken", "raising")
    assert "raising: It does not raise." in str(caught.value)


def test_only_and_skip():
    report = RULES.run(object(), "thing", only=["kept"])
    assert (report.passed, report.skipped) == (("kept",), ())
    report = RULES.run(object(), "thing", skip=["broken", "raising"])
    assert [skip.rule for skip in report.skipped] == ["broken", "raising", "skipped"]
    assert report.skipped[0].reason == "left out by the caller"


@pytest.mark.parametrize("argument", ["only", "skip"])
def test_refuses_unknown_rules(argument):
    with pytest.raises(
        ValueError, match=rf"^{argument} names 'kep'\. Allowed: kept, broken, raising,"
    ):
        RULES.run(object(), "thing", **{argument: ["kep"]})
    with pytest.raises(TypeError, match=rf"^{argument} is 'kept'\. Allowed: a collec"):
        RULES.run(object(), "thing", **{argument: "kept"})


def test_every_rule_needs_one_check_and_one_text():
    rules = Rulebook({"a": "A."})
    with pytest.raises(ValueError, match="'b' has no contract text"):
        rules.check("b")
    rules.check("a")(lambda subject: broken("x", "y"))
    with pytest.raises(ValueError, match="or a check already"):
        rules.check("a")
    with pytest.raises(KeyError):
        list(Rulebook({"a": "A."}))


@pytest.mark.parametrize("name", ["driver", "agent", "replay_buffer", "environment"])
def test_contract_texts_are_sentences(name):
    module = __import__(f"testing.contracts.{name}", fromlist=["CONTRACT", "RULES"])
    assert [rule.name for rule in module.RULES] == list(module.CONTRACT)
    for text in module.CONTRACT.values():
        assert text.endswith(".")
        assert text.count(". ") == 0


def test_every_public_name_can_be_imported():
    for name in testing.contracts.__all__:
        assert getattr(testing.contracts, name).__name__ == name
    assert set(testing.contracts.__all__) <= set(dir(testing.contracts))
    with pytest.raises(AttributeError, match="check_everything"):
        testing.contracts.check_everything  # noqa: B018
