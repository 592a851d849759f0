"""check_driver: what a driver must keep."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

from testing.cadence.report import Report
from testing.contracts._episodes import EPISODE, new_bandit, new_episodes
from testing.contracts._rules import Rulebook, broken, equal, not_exercised
from testing.fakes._calls import Core, call_python
from testing.fakes._tf import policy_step, tf, tf_policy
from testing.fakes.environment import FakeEnvironment
from testing.fakes.faults import FaultPlan
from testing.fakes.policy import FakePolicy
from testing.fakes.timeline import Timeline

CONTRACT = {
    "keeps-parts": "env, policy and observers are those it was given.",
    "step-count": "A run takes num_steps transitions, summed over the batch.",
    "whole-steps": (
        "When num_steps is no multiple of the batch size, a run takes the fewest "
        "whole steps that reach it."
    ),
    "act-then-step": (
        "Each step asks the policy once, then steps the environment once with its "
        "action."
    ),
    "observers-each-step": (
        "Each observer is called once per step, when the environment has been stepped."
    ),
    "observers-in-order": "Observers are called in the order they were given.",
    "trajectory": (
        "A trajectory pairs what was observed with the action taken on it and the "
        "reward that action earned, row by row."
    ),
    "bandit-episodes": "A bandit's trajectory is a whole episode: FIRST, then LAST.",
    "transitions": (
        "Each transition observer is called once per step with time step, policy step "
        "and next time step."
    ),
    "goes-on": (
        "A run goes on where the one before ended: nothing skipped, repeated or reset."
    ),
    "returns-last": "run returns the environment's current time step.",
    "starts-where-told": "A run starts at the time step it is given.",
    "policy-state": (
        "The policy's state goes from step to step, from its initial one or the one "
        "run is given, and is returned."
    ),
    "maximum-iterations": "A run stops after maximum_iterations steps.",
    "boundaries": (
        "The step from an episode's end to the next start is observed, not counted."
    ),
    "in-graph": "Inside tf.function each execution runs; tracing runs nothing.",
    "errors-surface": (
        "An error of environment, policy or observer reaches the caller."
    ),
}
RULES = Rulebook(CONTRACT)

BATCH = 3
STEPS = 4
LIMIT = 200
ENDLESS = f"The run does not end: stopped after {LIMIT} steps."


def check_driver(
    make: Callable[..., Any],
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    raises: bool = True,
) -> Report:
    """Checks a step driver against `CONTRACT`.

    Args:
      make: called as `make(env, policy, observers=[...], num_steps=n)`, and with
        `transition_observers=[...]` if it accepts that; returns a new driver. The
        class `DynamicStepDriver` will do as it is.
      only: names of the only rules to try; all if empty.
      skip: names of rules not to try.
      raises: whether to raise when a rule is broken.

    Returns:
      A report of broken, kept and skipped rules.

    Raises:
      ContractError: a rule is broken, and `raises` is true.
    """
    return RULES.run(_Subject(make), "driver", only=only, skip=skip, raises=raises)


class _Subject:
    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make

    def rig(self, num_steps: int = BATCH * STEPS, **kwargs: Any) -> _Rig:
        return _Rig(self.make, num_steps, **kwargs)


class _Rig:
    """A driver between a numbering environment, a policy and two observers."""

    def __init__(
        self,
        make: Callable[..., Any],
        num_steps: int,
        *,
        environment: Any = None,
        transitions: bool = False,
        remembers: bool = False,
        faults: FaultPlan | None = None,
    ) -> None:
        self.timeline = Timeline()
        faults = FaultPlan() if faults is None else faults
        # A driver that counts wrong might never stop by itself.
        for kind in ("env.step", "policy.action"):
            faults.raise_at(kind, LIMIT, RuntimeError(ENDLESS))
        parts: dict[str, Any] = {"timeline": self.timeline, "faults": faults}
        if environment is None:
            environment = FakeEnvironment(batch_size=BATCH, **parts)
        self.environment = environment
        self.policy = FakePolicy(
            environment.time_step_spec(),
            environment.action_spec(),
            actions=lambda call: [(call + row) % 3 for row in range(BATCH)][
                : environment.batch_size
            ],
            **parts,
        )
        if remembers:
            specs = environment.time_step_spec(), environment.action_spec()
            self.policy = _Remembering(*specs)
        self.first = _Observer("first", self.timeline, faults)
        self.second = _Observer("second", self.timeline, faults)
        observers: dict[str, list[Any]] = {"observers": [self.first, self.second]}
        if transitions:
            observers["observers"] = [self.first]
            observers["transition_observers"] = [self.second.transition]
        self.driver = make(environment, self.policy, num_steps=num_steps, **observers)

    @property
    def steps(self) -> int:
        return self.timeline.count("env.step")

    @property
    def kinds(self) -> list[str]:
        """What happened, without resets and driver's own events."""
        events = self.timeline.of("policy.action", "env.step", "metric.update")
        return [e.kind if e.kind != "metric.update" else e.name for e in events]


class _Remembering(tf_policy.TFPolicy):
    """A policy whose state counts the actions it has taken, row by row."""

    def __init__(self, time_step_spec: Any, action_spec: Any) -> None:
        state = tf.TensorSpec((), tf.int32, "actions_taken")
        super().__init__(time_step_spec, action_spec, policy_state_spec=state)

    def _variables(self) -> list[Any]:
        return []

    def _action(self, time_step: Any, policy_state: Any, seed: Any = None) -> Any:
        action = tf.zeros_like(policy_state, self.action_spec.dtype)
        return policy_step.PolicyStep(action, policy_state + 1, ())

    def _distribution(self, time_step: Any, policy_state: Any) -> Any:
        raise NotImplementedError


class _Observer:
    """Notes what it is told, at run time. Its events are `metric.update`s."""

    def __init__(self, name: str, timeline: Timeline, faults: FaultPlan | None) -> None:
        self.core = Core(name, timeline, faults)
        self.seen: list[dict[str, Any]] = []

    def __call__(self, trajectory: Any) -> None:
        self._note(trajectory)

    def transition(self, transition: Any) -> None:
        now, action_step, later = transition
        fields = {
            "step_type": now.step_type,
            "observation": now.observation,
            "action": action_step.action,
            "reward": later.reward,
            "next_step_type": later.step_type,
        }
        self._tell(fields)

    def _note(self, trajectory: Any) -> None:
        names = ("step_type", "observation", "action", "reward", "next_step_type")
        self._tell({name: getattr(trajectory, name) for name in names})

    def _tell(self, fields: dict[str, Any]) -> None:
        keep = functools.partial(self._keep, list(fields))
        call_python(self.core, keep, list(fields.values()), [(tf.int32, ())])

    def _keep(self, names: list[str], *arrays: Any) -> list[int]:
        self.core.reach("metric.update", "before")
        values = [array.tolist() for array in arrays]
        self.seen.append(dict(zip(names, values, strict=True)))
        self.core.timeline.add("metric.update", self.core.name, len(self.seen) - 1)
        return [0]


def _earned(rig: _Rig) -> list[dict[str, Any]]:
    """What the environment says each step was: the truth for trajectories."""
    return [
        {
            "observation": list(step.serials),
            "action": list(step.actions),
            "reward": list(step.rewards),
        }
        for step in rig.timeline.values("env.step")
    ]


def _told(observer: _Observer) -> list[dict[str, Any]]:
    names = ("observation", "action", "reward")
    return [{name: seen[name] for name in names} for seen in observer.seen]


@RULES.check("keeps-parts")
def _keeps_parts(subject: _Subject) -> None:
    rig = subject.rig()
    if rig.driver.env is not rig.environment:
        broken("the environment it was given", rig.driver.env, "driver.env")
    if rig.driver.policy is not rig.policy:
        broken("the policy it was given", rig.driver.policy, "driver.policy")
    equal([rig.first, rig.second], list(rig.driver.observers), "driver.observers")


@RULES.check("step-count")
def _step_count(subject: _Subject) -> None:
    for steps in (1, STEPS):
        rig = subject.rig(BATCH * steps)
        for run in range(1, 3):
            rig.driver.run()
            where = f"environment steps after run {run} of {BATCH * steps} transitions"
            hint = "num_steps counts transitions of all rows, not steps."
            equal(run * steps, rig.steps, where, hint)


@RULES.check("whole-steps")
def _whole_steps(subject: _Subject) -> None:
    for num_steps, steps in ((1, 1), (BATCH + 1, 2)):
        rig = subject.rig(num_steps)
        rig.driver.run()
        equal(steps, rig.steps, f"environment steps for num_steps={num_steps}")


@RULES.check("act-then-step")
def _act_then_step(subject: _Subject) -> None:
    rig = subject.rig()
    rig.driver.run()
    kinds = [kind for kind in rig.kinds if kind in ("policy.action", "env.step")]
    equal(["policy.action", "env.step"] * rig.steps, kinds, "order of calls")
    chosen = rig.timeline.values("policy.action")
    taken = [step.actions for step in rig.timeline.values("env.step")]
    equal(chosen, taken, "actions taken in the environment")


@RULES.check("observers-each-step")
def _observers_each_step(subject: _Subject) -> None:
    rig = subject.rig()
    rig.driver.run()
    for observer in (rig.first, rig.second):
        name = observer.core.name
        kinds = [kind for kind in rig.kinds if kind in ("env.step", name)]
        equal(["env.step", name] * rig.steps, kinds, f"calls of the {name} observer")


@RULES.check("observers-in-order")
def _observers_in_order(subject: _Subject) -> None:
    rig = subject.rig()
    rig.driver.run()
    order = [kind for kind in rig.kinds if kind in ("first", "second")]
    if not order:
        not_exercised("no observer was called")
    hint = "Keep observers in a list; a set has no order."
    equal(["first", "second"], list(dict.fromkeys(order)), "order of observers", hint)


@RULES.check("trajectory")
def _trajectory(subject: _Subject) -> None:
    rig = subject.rig()
    rig.driver.run()
    if not rig.first.seen:
        not_exercised("no observer was called")
    for index, (earned, told) in enumerate(
        zip(_earned(rig), _told(rig.first), strict=False)
    ):
        equal(earned, told, f"trajectory {index}")


@RULES.check("bandit-episodes")
def _bandit_episodes(subject: _Subject) -> None:
    bandits = {"TensorFlow": None, "Python": new_bandit(BATCH)}
    for kind, environment in bandits.items():
        rig = subject.rig(environment=environment)
        rig.driver.run()
        if not rig.first.seen:
            not_exercised("no observer was called")
        for index, seen in enumerate(rig.first.seen):
            types = (seen["step_type"], seen["next_step_type"])
            where = f"step types of trajectory {index}, bandit in {kind}"
            equal(([0] * BATCH, [2] * BATCH), types, where)


@RULES.check("transitions")
def _transitions(subject: _Subject) -> None:
    if "transition_observers" not in inspect.signature(subject.make).parameters:
        not_exercised("it takes no transition_observers")
    rig = subject.rig(transitions=True)
    rig.driver.run()
    equal(_earned(rig), _told(rig.second), "what the transition observer was told")


@RULES.check("goes-on")
def _goes_on(subject: _Subject) -> None:
    rig = subject.rig()
    for _ in range(3):
        rig.driver.run()
    resets = rig.timeline.count("env.reset")
    equal(1, resets, "resets in three runs of a bandit")
    serials = [n for step in rig.timeline.values("env.step") for n in step.serials]
    equal(list(range(len(serials))), serials, "interactions of three runs")


@RULES.check("returns-last")
def _returns_last(subject: _Subject) -> None:
    rig = subject.rig()
    result = rig.driver.run()
    if not isinstance(result, tuple) or len(result) != 2:
        broken("(time_step, policy_state)", type(result).__name__, "result of run()")
    now = rig.environment.current_time_step()
    for name in ("step_type", "observation", "reward"):
        seen = getattr(result[0], name).numpy().tolist()
        equal(getattr(now, name).numpy().tolist(), seen, f"{name} of the result")


@RULES.check("starts-where-told")
def _starts_where_told(subject: _Subject) -> None:
    rig = subject.rig(BATCH)
    if "time_step" not in inspect.signature(rig.driver.run).parameters:
        not_exercised("run takes no time_step")
    now = rig.environment.reset()
    told = now._replace(observation=now.observation + 500)
    rig.driver.run(time_step=told)
    if not rig.first.seen:
        not_exercised("no observer was called")
    seen = rig.first.seen[0]["observation"]
    equal([500 + row for row in range(BATCH)], seen, "first observation")


@RULES.check("policy-state")
def _policy_state(subject: _Subject) -> None:
    rig = subject.rig(remembers=True)
    if "policy_state" not in inspect.signature(rig.driver.run).parameters:
        not_exercised("run takes no policy_state")
    _remembered(rig, "of a policy that counts its actions")
    given = tf.fill([BATCH], 40)
    _remembered(rig, "when given 40", policy_state=given)


def _remembered(rig: _Rig, what: str, **given: Any) -> None:
    before = rig.steps - (40 if given else 0)
    returned = rig.driver.run(**given)
    if not isinstance(returned, tuple) or len(returned) != 2:
        not_exercised("run does not return time step and policy state")
    state = [int(row) for row in tf.nest.flatten(returned[1])[0]]
    equal([rig.steps - before] * BATCH, state, f"state {what}, after a run")


@RULES.check("maximum-iterations")
def _maximum_iterations(subject: _Subject) -> None:
    rig = subject.rig()
    if "maximum_iterations" not in inspect.signature(rig.driver.run).parameters:
        not_exercised("run takes no maximum_iterations")
    rig.driver.run(maximum_iterations=2)
    equal(2, rig.steps, f"steps of at most 2 of {STEPS}")


@RULES.check("boundaries")
def _boundaries(subject: _Subject) -> None:
    rig = subject.rig(2 * EPISODE + 1, environment=new_episodes())
    rig.driver.run()
    if not rig.first.seen:
        not_exercised("no observer was called")
    ends = [seen["step_type"] == [2] for seen in rig.first.seen]
    counted = len(ends) - sum(ends)
    where = f"transitions in episodes of {EPISODE} steps"
    equal((2 * EPISODE + 1, 2), (counted, sum(ends)), f"{where}, and boundaries")


@RULES.check("in-graph")
def _in_graph(subject: _Subject) -> None:
    rig, eager = subject.rig(), subject.rig()

    @tf.function
    def run(count: Any) -> Any:
        for _ in tf.range(count):
            rig.driver.run()
        return count

    run(tf.constant(0))
    equal(0, rig.steps, "steps after tracing alone")
    run(tf.constant(1))
    run(tf.constant(2, tf.int64))
    for _ in range(3):
        eager.driver.run()
    equal(eager.kinds, rig.kinds, "calls of three runs in a graph, against eager ones")
    for name, observer in (("first", rig.first), ("second", rig.second)):
        told = getattr(eager, name).seen
        equal(told, observer.seen, f"what the {name} observer was told in a graph")


@RULES.check("errors-surface")
def _errors_surface(subject: _Subject) -> None:
    tried = False
    for kind in ("env.step", "policy.action", "metric.update"):
        faults = FaultPlan()
        faults.raise_at(kind, 1)
        rig = subject.rig(faults=faults)
        try:
            rig.driver.run()
        except Exception as error:
            if "Injected fault" not in str(error):
                broken("the injected fault", repr(error), f"error at {kind}")
        else:
            if faults.fired:
                broken("the injected fault", "no error", f"error at {kind}")
        tried = tried or bool(faults.fired)
    if not tried:
        not_exercised("it called nothing that could fail")
