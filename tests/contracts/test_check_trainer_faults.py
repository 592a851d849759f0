"""Each planted fault is caught by exactly the rules it should be, and told shortly."""

from __future__ import annotations

import pytest

from testing.contracts import check_trainer
from testing.contracts.trainer.texts import CONTRACT
from tests.contracts import golden
from tests.faulty.faults import FAULTS

# Reports that are read and pinned: one for each kind of fault.
PINNED = (
    "BadFormat",
    "BatchSkipped",
    "Epochs",
    "FirstBatchAgain",
    "FrozenStep",
    "HugeBuffer",
    "InvertedModulo",
    "LossBefore",
    "LoopsFromEnvironmentSteps",
    "MetricsAtTheEnd",
    "NanAsZero",
    "NegativeLoops",
    "NeverAttached",
    "NumStepsSummed",
    "PolicyOfTheFirstLoop",
    "Printed",
    "Reversed",
    "RewardsShifted",
    "SavedInFinally",
    "StepMetricNeverUpdated",
    "SummariesAtEnvironmentSteps",
    "SwappedAxes",
    "WriterLeft",
)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_by_these_rules_and_no_other(name):
    fault = FAULTS[name]
    report = check_trainer(fault.train, raises=False)
    assert set(report.broken) == fault.rules, str(report)
    if len(fault.rules) == 1:
        assert len(str(report).splitlines()) < 25
    if name in PINNED:
        golden.check(name, str(report))


def test_every_rule_has_a_fault_that_it_catches():
    assert set(CONTRACT) == {rule for fault in FAULTS.values() for rule in fault.rules}


def test_nearly_every_rule_is_the_only_one_to_catch_some_fault():
    alone = {rule for f in FAULTS.values() for rule in f.rules if len(f.rules) == 1}
    # What is wrong in the checkpoint is wrong after resuming, too. And what goes
    # wrong with driver runs is seen in what is trained on, what they log.
    assert set(CONTRACT) - alone == {"driver-runs", "checkpoint-final"}


def test_pinned_reports_are_of_faults():
    files = {path.stem for path in golden.DIRECTORY.glob("*.txt")}
    assert set(PINNED) <= set(FAULTS)
    assert files - {"tf_agents"} == set(PINNED)
