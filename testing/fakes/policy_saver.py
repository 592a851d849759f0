"""FakePolicySaver: notes exports and writes a small stand-in, in no time."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from testing.fakes._calls import Core, Recording
from testing.fakes._tf import policy_saver, tf, tf_policy
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline

FILE = "fake_policy.json"


class Export(NamedTuple):
    """One export: where to, and the policy's train step then."""

    path: str
    train_step: int


class FakePolicySaver(policy_saver.PolicySaver, Recording):
    """A `PolicySaver` that traces nothing and writes one small file.

    The real one traces the policy for a second or more. This one writes
    `fake_policy.json` with the train step and the policy's variables instead of a
    SavedModel, so the export cannot be loaded as a policy.

        make = functools.partial(FakePolicySaver, timeline=timeline)
        with mock.patch.object(policy_saver, "PolicySaver", make):
            train(...)

    On its timeline: `policy.save` with the train step and the directory.

    Attributes:
      timeline: where its events go.
      exports: the exports of this process, each with path and train step.
      saves: how many there were, also before a restore.
    """

    def __init__(
        self,
        policy: Any,
        batch_size: int | None = None,
        use_nest_path_signatures: bool = True,
        seed: Any = None,
        train_step: Any = None,
        input_fn_and_spec: Any = None,
        metadata: dict[str, Any] | None = None,
        *,
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
        name: str = "FakePolicySaver",
    ) -> None:
        """Creates the saver. Arguments are those of the real one, and

        Args:
          policy: the policy to export.
          batch_size: a positive integer, or None.
          use_nest_path_signatures: without effect.
          seed: without effect.
          train_step: the variable to export as train step; -1 if None.
          input_fn_and_spec: without effect.
          metadata: variables to export beside it.
          timeline: where its events go; one of its own by default.
          faults: faults at `policy.save`; inside, the directory is there, but empty.
          name: name of its events.

        Raises:
          TypeError, ValueError: as the real one.
        """
        tf.Module.__init__(self, name=name)
        _check(policy, batch_size, train_step)
        self._raw_policy = policy
        self._step = (
            tf.Variable(-1, dtype=tf.int64) if train_step is None else train_step
        )
        self._extra = dict(metadata or {})
        self._action_input_spec = (policy.time_step_spec, policy.policy_state_spec)
        self._policy_step_spec = policy.policy_step_spec
        self._policy_state_spec = policy.policy_state_spec
        self._signatures: dict[str, Any] = {}
        self._exporting = _Exporting(name, timeline, faults)
        self.track(self._exporting)

    @property
    def timeline(self) -> Timeline:
        return self._exporting.timeline

    @property
    def exports(self) -> tuple[Export, ...]:
        events = self.timeline.of("policy.save", name=self._exporting.name)
        return tuple(Export(e.value, e.step or 0) for e in events)

    @property
    def saves(self) -> int:
        return self._exporting.saves

    def __repr__(self) -> str:
        last = self.exports[-1:]
        tail = f", last {last[0]}" if last else ""
        return f"<FakePolicySaver {self.name!r}: {self.saves} exports{tail}>"

    def get_train_step(self) -> Any:
        """The train step as it is now."""
        return self._step.read_value()

    def get_metadata(self) -> dict[str, Any]:
        """The metadata as they are now."""
        return {key: value.read_value() for key, value in self._extra.items()}

    def save(self, export_dir: str, options: Any = None) -> None:
        """Writes the stand-in into `export_dir`."""
        core = self._exporting
        core.reach("policy.save", "before")
        os.makedirs(export_dir, exist_ok=True)
        core.reach("policy.save", "inside")
        train_step = int(self._step.numpy())
        content = {
            "train_step": train_step,
            "variables": [v.numpy().tolist() for v in self._raw_policy.variables()],
            "metadata": {k: v.numpy().tolist() for k, v in self._extra.items()},
        }
        with open(os.path.join(export_dir, FILE), "w", encoding="utf-8") as file:
            json.dump(content, file)
        core.saved(os.fspath(export_dir), train_step)

    def save_checkpoint(self, export_dir: str, options: Any = None) -> None:
        """Writes a checkpoint of the policy, as the real one."""
        prefix = os.path.join(export_dir, "variables", "variables")
        tf.train.Checkpoint(
            model_variables=self._raw_policy.variables(), train_step=self._step
        ).write(prefix)


class _Exporting(Core):
    """Counts exports."""

    SAVED = ("saves",)

    saves = 0

    def saved(self, path: str, train_step: int) -> None:
        with self.lock:
            self.timeline.add("policy.save", self.name, train_step, path)
            self.saves += 1
        self.reach("policy.save", "after")


def _check(policy: Any, batch_size: Any, train_step: Any) -> None:
    """The real one's checks."""
    if not isinstance(policy, tf_policy.TFPolicy):
        raise TypeError(f"policy is not a TFPolicy. Saw: {type(policy)}")
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
        raise ValueError(
            f"Expected batch_size == None or python int > 0, saw: {batch_size}"
        )
    if train_step is not None and not isinstance(train_step, tf.Variable):
        raise ValueError(f"train_step must be a TensorFlow variable: {train_step}")
