"""CountingDriver: a driver that counts its runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from testing.fakes._calls import Core, Recording, call_python
from testing.fakes._tf import (
    driver,
    dynamic_step_driver,
    tf,
    time_step,
    trajectory,
)
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline

Observer = Callable[[Any], Any]


class CountingDriver(driver.Driver, Recording):
    """A lean `DynamicStepDriver` that puts each run on its timeline.

    Takes the same arguments and keeps the same contract: `num_steps` transitions
    summed over the batch, observers called once per step with a trajectory of shape
    `[batch_size, ...]`. Works eagerly and inside `tf.function`.

    On its timeline: `driver.run`, when the run is done, with the number of
    transitions, counted from 0.

    Attributes:
      timeline: where its events go.
      runs: how many runs were finished.
    """

    def __init__(
        self,
        env: Any,
        policy: Any,
        observers: Sequence[Observer] | None = None,
        transition_observers: Sequence[Observer] | None = None,
        num_steps: int = 1,
        *,
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
        name: str = "CountingDriver",
    ) -> None:
        """Creates the driver.

        Args:
          env: a TF environment.
          policy: a TF policy.
          observers: called with the trajectory of each step.
          transition_observers: called with `(time_step, action_step,
            next_time_step)` of each step.
          num_steps: transitions per run, summed over the batch; episode boundaries
            do not count.
          timeline: where its events go; one of its own by default.
          faults: faults at `driver.run`; inside is after each of its steps.
          name: name of its events.
        """
        tf.Module.__init__(self, name=name)
        driver.Driver.__init__(self, env, policy, observers, transition_observers)
        self._num_steps = num_steps
        self._running = _Running(name, timeline, faults)
        self.track(self._running)

    @property
    def timeline(self) -> Timeline:
        return self._running.timeline

    @property
    def runs(self) -> int:
        return self._running.runs

    def __repr__(self) -> str:
        return (
            f"<CountingDriver {self.name!r}: {self.runs} runs of {self._num_steps} "
            f"transitions, {len(self.observers)} observers>"
        )

    def run(
        self,
        time_step: Any = None,
        policy_state: Any = None,
        maximum_iterations: int | None = None,
    ) -> tuple[Any, Any]:
        """Takes steps in the environment and calls the observers.

        Args:
          time_step: where to start; by default the environment's current one.
          policy_state: by default the policy's initial state.
          maximum_iterations: stop after so many steps, whatever they count.

        Returns:
          The final time step and policy state.
        """
        self._reach("before")
        if time_step is None:
            time_step = self.env.current_time_step()
        if policy_state is None:
            policy_state = self.policy.get_initial_state(self.env.batch_size)
        counter = tf.zeros(tf.shape(time_step.step_type), tf.int32)
        counter, time_step, policy_state = tf.while_loop(
            lambda counter, *_: tf.reduce_sum(counter) < self._num_steps,
            self._advance,
            [counter, time_step, policy_state],
            parallel_iterations=1,
            maximum_iterations=maximum_iterations,
        )
        taken = tf.reduce_sum(counter)
        call_python(self._running, self._running.finish, [taken], [(tf.int32, ())])
        self._reach("after")
        return time_step, policy_state

    def _advance(self, counter: Any, now: Any, policy_state: Any) -> list[Any]:
        """One step: act, step the environment, tell the observers."""
        action_step = self.policy.action(now, policy_state)
        later = self.env.step(action_step.action)
        self._reach("inside")
        if dynamic_step_driver.is_bandit_env(self.env):
            # A bandit's episode is one step long, so each step opens one.
            first = tf.fill(tf.shape(now.step_type), time_step.StepType.FIRST)
            now = now._replace(step_type=first)
        experience = trajectory.from_transition(now, action_step, later)
        self._tell(experience, (now, action_step, later))
        counter += self._counted(experience)
        return [counter, later, action_step.state]

    def _tell(self, experience: Any, transition: Any) -> None:
        for observer in self.observers:
            observer(experience)
        for observer in self.transition_observers:
            observer(transition)

    def _counted(self, experience: Any) -> Any:
        """Per row 1, or 0 for the step between two episodes."""
        return tf.cast(~experience.is_boundary(), tf.int32)

    def _reach(self, when: str) -> None:
        """Stops at a point of the fault plan, if there is one."""
        if self._running.watched:
            stop = functools.partial(self._running.stop, when)
            call_python(self._running, stop, [0], [(tf.int32, ())])


class _Running(Core):
    """Counts runs."""

    SAVED = ("runs",)

    runs = 0

    def finish(self, taken: Any) -> list[Any]:
        with self.lock:
            self.timeline.add("driver.run", self.name, self.runs, int(taken))
            self.runs += 1
            return [taken]

    def stop(self, when: str, unused: Any) -> list[Any]:
        self.reach("driver.run", when)
        return [unused]
