"""docs/cadence.md names every irregularity, rule and key, and its examples hold."""

from __future__ import annotations

import json
import pathlib
import re

from testing.cadence import IRREGULARITIES, Cadence
from testing.cadence.__main__ import main
from testing.cadence.contract import RULES
from tests.cadence.runs import bandit, write

TEXT = pathlib.Path(__file__).parents[2].joinpath("docs/cadence.md").read_text("utf-8")


def test_every_irregularity_and_rule_is_explained():
    for name in (*IRREGULARITIES, *RULES):
        assert f"`{name}`" in TEXT


def test_every_key_of_the_json_is_explained(tmp_path, capsys):
    main(
        [
            "check",
            str(write(tmp_path / "run.log", bandit(drop=(9,)))),
            "--format",
            "json",
        ]
    )
    found = json.loads(capsys.readouterr().out)
    keys = {*found, *found["series"][0], *found["findings"][0]}
    assert keys <= set(re.findall(r"`(\w+)`", TEXT.split("## JSON")[1]))


def test_the_cadence_can_be_loaded():
    cadence = Cadence.from_toml(re.search(r"```toml\n(.*?)```", TEXT, re.S)[1])
    assert cadence["eval/reward"].count == 4
    assert cadence.order.block == 4
