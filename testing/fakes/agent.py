"""CountingAgent: an agent with scripted losses that notes what it is trained on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from testing.fakes import _script
from testing.fakes._calls import Core, call_python
from testing.fakes._tf import nest_utils, tf, tf_agent
from testing.fakes.environment import SERIAL
from testing.fakes.faults import FaultPlan
from testing.fakes.policy import FakePolicy
from testing.fakes.timeline import Timeline
from testing.fakes.values import TrainCall

Losses = Sequence[float] | Callable[[int], float]


class CountingAgent(tf_agent.TFAgent):
    """An agent that learns nothing and remembers everything.

    Its losses are scripted, all different by default, so a loss logged one step late
    or smoothed shows. Its policies are `FakePolicy`s; `policy` is pure TensorFlow
    and can be exported, `collect_policy` notes each action.

        agent = CountingAgent(environment, timeline=timeline)
        agent.train(experience)
        agent.train_calls[0].serials     # which interactions it was trained on

    On its timeline: `agent.train` with a `TrainCall`, counted from 0.

    Attributes:
      timeline: where its events go.
      calls: how many times it was trained, since it was created or restored.
      train_calls: what each train call of this process got and returned.
    """

    def __init__(
        self,
        environment: Any = None,
        *,
        time_step_spec: Any = None,
        action_spec: Any = None,
        losses: Losses = _script.distinct_loss,
        train_step_counter: Any = None,
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
        name: str = "CountingAgent",
    ) -> None:
        """Creates the agent.

        Args:
          environment: the environment whose specs it takes.
          time_step_spec: instead of the environment's.
          action_spec: instead of the environment's.
          losses: the loss of each train call, as a sequence or a function of the
            call's index; float32.
          train_step_counter: variable, int64; one of its own by default, so that the
            global step stays alone.
          timeline: where its events go; one of its own by default.
          faults: faults at `agent.train`, also NaN losses. Before: nothing is
            changed yet; inside: the call is counted, `train_step_counter` not.
          name: name of its events.

        Raises:
          TypeError: no environment and not both specs are given.
        """
        if environment is not None:
            time_step_spec = time_step_spec or environment.time_step_spec()
            action_spec = action_spec or environment.action_spec()
        if time_step_spec is None or action_spec is None:
            raise TypeError(
                "CountingAgent needs an environment, "
                "or both time_step_spec and action_spec."
            )
        if train_step_counter is None:
            train_step_counter = tf.Variable(
                0, dtype=tf.int64, trainable=False, name="train_step"
            )
        self._training = _Training(name, timeline, faults)
        self._training.losses = losses
        specs = time_step_spec, action_spec
        policy = FakePolicy(
            *specs, train_step=train_step_counter, name=f"{name}_policy"
        )
        collect_policy = FakePolicy(
            *specs,
            train_step=train_step_counter,
            timeline=self._training.timeline,
            faults=faults,
            name=f"{name}_collect_policy",
        )
        super().__init__(
            time_step_spec,
            action_spec,
            policy,
            collect_policy,
            train_sequence_length=None,
            train_step_counter=train_step_counter,
        )

    @property
    def timeline(self) -> Timeline:
        return self._training.timeline

    @property
    def calls(self) -> int:
        return self._training.calls

    @property
    def train_calls(self) -> tuple[TrainCall, ...]:
        events = self.timeline.of("agent.train", name=self._training.name)
        return tuple(event.value for event in events)

    def __repr__(self) -> str:
        last = self.train_calls[-1:]
        tail = f", last {last[0]}" if last else ""
        return f"<CountingAgent {self._training.name!r}: {self.calls} calls{tail}>"

    def _train(self, experience: Any, weights: Any = None) -> Any:
        nest_utils.assert_same_structure(
            experience,
            self.training_data_spec,
            message="experience and training_data_spec structures do not match",
        )
        inputs = [tf.nest.flatten(x)[0] for x in (experience.action, experience.reward)]
        numbered, rank = self._numbered(experience.observation)
        train = functools.partial(self._training.train, rank)
        inputs += numbered
        (loss,) = call_python(self._training, train, inputs, [(tf.float32, ())])
        with tf.control_dependencies([loss]):
            counted = self.train_step_counter.assign_add(1)
        if self._training.watched:
            with tf.control_dependencies([counted]):
                (loss,) = call_python(
                    self._training, self._training.finish, [loss], [(tf.float32, ())]
                )
        return tf_agent.LossInfo(loss, ())

    def _numbered(self, observation: Any) -> tuple[list[Any], int]:
        """The leaf that carries serial numbers, if one does, and its spec's rank."""
        specs = tf.nest.flatten(self.time_step_spec.observation)
        for leaf, spec in zip(tf.nest.flatten(observation), specs, strict=True):
            if spec.name == SERIAL:
                return [leaf], spec.shape.rank
        return [], 0


class _Training(Core):
    """Counts train calls and follows the script."""

    SAVED = ("calls",)

    losses: Losses = staticmethod(_script.distinct_loss)
    calls = 0

    def train(self, rank: int, actions: Any, rewards: Any, *numbered: Any) -> list[Any]:
        """Notes one call; `numbered` are observations made of serial numbers."""
        serials = None
        for observation in numbered:
            one = observation[(..., *[0] * rank)]
            serials = _nested(one.astype(np.int64))
        with self.lock:
            self.reach("agent.train", "before")
            index = self.calls
            loss = float(np.float32(_script.at(self.losses, index, "losses")))
            loss = self.faults.corrupt("agent.train", loss, self.name)
            call = TrainCall(
                tuple(rewards.shape[:2]),
                serials,
                _nested(actions),
                _nested(rewards),
                loss,
            )
            self.timeline.add("agent.train", self.name, index, call)
            self.calls += 1
            self.reach("agent.train", "inside")
            return [loss]

    def finish(self, loss: Any) -> list[Any]:
        self.reach("agent.train", "after")
        return [loss]


def _nested(array: Any) -> Any:
    """An array as nested tuples of Python numbers, which compare and print well."""
    return _tuples(array.tolist())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
