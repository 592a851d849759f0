"""check_agent: what an agent must keep."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from testing.cadence.report import Report
from testing.contracts._rules import Rulebook, broken, equal, not_exercised
from testing.fakes._tf import (
    policy_saver,
    tf,
    tf_agent,
    trajectory,
)
from testing.fakes.environment import FakeEnvironment

CONTRACT = {
    "interface": "It is a TFAgent and keeps the specs it was made with.",
    "same-policies": (
        "policy and collect_policy stay the same objects while it is trained."
    ),
    "acts-in-spec": "Both policies act within the action spec, one action per row.",
    "collects-what-it-trains-on": (
        "What collect_policy's runs collect fits training_data_spec."
    ),
    "loss-info": "train returns a LossInfo whose loss is one finite number.",
    "counts-train-steps": (
        "Each train call raises train_step_counter by exactly one, whatever the "
        "batch size and length of the experience."
    ),
    "any-length": "It trains on experience of one step and of several.",
    "training-shows": "Training changes variables of the agent.",
    "policy-follows": (
        "Training changes variables of policy, so that an export of it shows."
    ),
    "refuses-wrong-experience": (
        "Experience of another structure is refused, and trains nothing."
    ),
    "in-graph": "Inside tf.function each execution trains; tracing trains nothing.",
    "checkpoint": (
        "A checkpoint holds all that training changed: a restored agent trains on "
        "with the same losses."
    ),
    "exports": "An exported policy acts within the spec and holds the trained state.",
}
RULES = Rulebook(CONTRACT)

BATCH = 3

MakeAgent = Callable[[Any, Any], Any]


def check_agent(
    make: MakeAgent,
    *,
    observation_shape: tuple[int, ...] = (2,),
    num_actions: int = 3,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    raises: bool = True,
) -> Report:
    """Checks a bandit agent against `CONTRACT`.

    Args:
      make: called as `make(time_step_spec, action_spec)`, returns a new agent. It is
        tried with float32 observations and rewards of 0 to 1.
      observation_shape: shape of one observation.
      num_actions: actions are int32 scalars, 0 to `num_actions - 1`.
      only: names of the only rules to try; all if empty.
      skip: names of rules not to try.
      raises: whether to raise when a rule is broken.

    Returns:
      A report of broken, kept and skipped rules.

    Raises:
      ContractError: a rule is broken, and `raises` is true.
    """
    subject = _Subject(make, observation_shape, num_actions)
    return RULES.run(subject, "agent", only=only, skip=skip, raises=raises)


class _Subject:
    """Makes agents, and experience for them."""

    def __init__(
        self, make: MakeAgent, observation_shape: tuple[int, ...], num_actions: int
    ) -> None:
        self.make = make
        self.environment = FakeEnvironment(
            batch_size=BATCH,
            num_actions=num_actions,
            observation_shape=observation_shape,
            observation_dtype=tf.float32,
            rewards=lambda serials, actions: (serials + actions) % 4 / 3,
        )

    def new(self) -> Any:
        """A new, initialized agent."""
        environment = self.environment
        agent = self.make(environment.time_step_spec(), environment.action_spec())
        agent.initialize()
        return agent

    def experience(self, agent: Any, steps: int = 2) -> Any:
        """What `collect_policy` collects: shape `[BATCH, steps, ...]`."""
        rows = [self.transition(agent) for _ in range(steps)]
        return tf.nest.map_structure(lambda *t: tf.stack(t, 1), *rows)

    def transition(self, agent: Any) -> Any:
        now = self.environment.reset()
        # Large context values drown what a few calls of training change.
        now = now._replace(observation=tf.math.mod(now.observation, 7.0) / 7.0)
        action_step = agent.collect_policy.action(now)
        later = self.environment.step(action_step.action)
        return trajectory.from_transition(now, action_step, later)


def _loss(agent: Any, experience: Any) -> float:
    return float(tf.reduce_sum(agent.train(experience).loss))


def _steps(agent: Any) -> int:
    return int(agent.train_step_counter.numpy())


def _state(agent: Any) -> list[Any]:
    """Values of all variables but the counter."""
    return [
        variable.numpy().tolist()
        for variable in agent.variables
        if variable is not agent.train_step_counter
    ]


@RULES.check("interface")
def _interface(subject: _Subject) -> None:
    agent, environment = subject.new(), subject.environment
    if not isinstance(agent, tf_agent.TFAgent):
        broken("a TFAgent", type(agent).__name__, "type")
    specs = {
        "time_step_spec": (environment.time_step_spec(), agent.time_step_spec),
        "action_spec": (environment.action_spec(), agent.action_spec),
    }
    for name, (given, kept) in specs.items():
        equal(tf.nest.flatten(given), tf.nest.flatten(kept), name)


@RULES.check("same-policies")
def _same_policies(subject: _Subject) -> None:
    agent = subject.new()
    before = agent.policy, agent.collect_policy
    agent.train(subject.experience(agent))
    after = agent.policy, agent.collect_policy
    for name, old, new in zip(("policy", "collect_policy"), before, after, strict=True):
        if old is not new:
            hint = "Drivers and savers keep the object they were given."
            broken("the same object", "a new one", name, hint)


@RULES.check("acts-in-spec")
def _acts_in_spec(subject: _Subject) -> None:
    agent = subject.new()
    for name in ("policy", "collect_policy"):
        action = getattr(agent, name).action(subject.environment.reset()).action
        _in_spec(agent.action_spec, action, f"actions of {name}")


def _in_spec(spec: Any, action: Any, where: str) -> None:
    equal((BATCH, *spec.shape), tuple(action.shape), f"shape of {where}")
    equal(spec.dtype.name, action.dtype.name, f"dtype of {where}")
    array = action.numpy()
    if (array < spec.minimum).any() or (array > spec.maximum).any():
        broken(f"{spec.minimum} to {spec.maximum}", array.tolist(), where)


@RULES.check("collects-what-it-trains-on")
def _collects_what_it_trains_on(subject: _Subject) -> None:
    agent = subject.new()
    collected, spec = subject.transition(agent), agent.training_data_spec
    tf.nest.assert_same_structure(spec, collected)
    flat = zip(tf.nest.flatten(spec), tf.nest.flatten(collected), strict=True)
    for leaf, value in flat:
        equal(leaf.dtype.name, value.dtype.name, f"dtype of {leaf.name}")
        equal((BATCH, *leaf.shape), tuple(value.shape), f"shape of {leaf.name}")


@RULES.check("loss-info")
def _loss_info(subject: _Subject) -> None:
    agent = subject.new()
    info = agent.train(subject.experience(agent))
    if not isinstance(info, tf_agent.LossInfo):
        broken("a LossInfo", type(info).__name__, "result of train()")
    loss = np.asarray(info.loss)
    equal((), loss.shape, "shape of the loss")
    if not np.isfinite(loss):
        broken("a finite number", float(loss), "loss")


@RULES.check("counts-train-steps")
def _counts_train_steps(subject: _Subject) -> None:
    agent = subject.new()
    start = _steps(agent)
    for call, steps in enumerate((1, 2, 2), 1):
        agent.train(subject.experience(agent, steps))
        where = f"train_step_counter after {call} calls of {BATCH} rows"
        hint = "It counts train calls, not the rows of the experience."
        equal(start + call, _steps(agent), where, hint)


@RULES.check("any-length")
def _any_length(subject: _Subject) -> None:
    agent = subject.new()
    if agent.train_sequence_length is not None:
        length = agent.train_sequence_length
        not_exercised(f"it asks for sequences of {length} steps")
    for steps in (1, 3):
        try:
            agent.train(subject.experience(agent, steps))
        except Exception as error:
            seen = f"{type(error).__name__}: {error}"
            broken("no error", seen, f"experience of {steps} steps")


@RULES.check("training-shows")
def _training_shows(subject: _Subject) -> None:
    agent = subject.new()
    before = [v.numpy().tolist() for v in agent.variables]
    agent.train(subject.experience(agent))
    if before == [v.numpy().tolist() for v in agent.variables]:
        broken("a change", "none", "variables after train()")


@RULES.check("policy-follows")
def _policy_follows(subject: _Subject) -> None:
    agent = subject.new()
    before = [v.numpy().tolist() for v in agent.policy.variables()]
    agent.train(subject.experience(agent))
    if before == [v.numpy().tolist() for v in agent.policy.variables()]:
        hint = "The policy must share the agent's variables, not copy them."
        broken("a change", "none", "policy.variables() after train()", hint)


@RULES.check("refuses-wrong-experience")
def _refuses_wrong_experience(subject: _Subject) -> None:
    agent = subject.new()
    before = _state(agent), _steps(agent)
    wrong = subject.experience(agent)._replace(observation=())
    try:
        agent.train(wrong)
    except Exception:
        equal(before, (_state(agent), _steps(agent)), "variables after the refusal")
    else:
        broken("an error", "accepted", "experience without observations")


@RULES.check("in-graph")
def _in_graph(subject: _Subject) -> None:
    agent, twin = subject.new(), subject.new()
    experience = subject.experience(agent)
    if _state(agent) == _state(twin):
        # Same start: then a call in a graph must do what an eager one does.
        losses = [_loss(twin, experience) for _ in range(3)]
    else:
        losses = []
    eager = subject.new()
    before = _steps(eager)
    eager.train(experience)
    per_call = _steps(eager) - before

    @tf.function
    def train(count: Any) -> Any:
        loss = tf.constant(0.0)
        for _ in tf.range(count):
            loss = tf.reduce_sum(agent.train(experience).loss)
            loss = tf.reshape(tf.cast(loss, tf.float32), ())
        return loss

    start = _steps(agent)
    train(tf.constant(0))
    equal(start, _steps(agent), "train_step_counter after tracing alone")
    seen = [float(train(tf.constant(n, t))) for n, t in _COUNTS]
    equal(start + 3 * per_call, _steps(agent), "train_step_counter after three calls")
    if losses:
        close = np.allclose([losses[0], losses[2]], seen, rtol=1e-4, equal_nan=True)
        if not close:
            expected = f"the eager losses {[losses[0], losses[2]]}"
            broken(expected, seen, "losses of calls 0 and 2 in a graph")


_COUNTS = ((1, tf.int32), (2, tf.int64))


@RULES.check("checkpoint")
def _checkpoint(subject: _Subject) -> None:
    agent, other = subject.new(), subject.new()
    experience = subject.experience(agent)
    for _ in range(2):
        agent.train(experience)
    saved = _state(agent), _steps(agent)
    with tempfile.TemporaryDirectory() as directory:
        path = tf.train.Checkpoint(agent=agent).save(f"{directory}/agent")
        tf.train.Checkpoint(agent=other).restore(path)
        steps, states = _steps(other), _state(other)
        # Still there for what a first train call creates and restores late.
        losses = [_loss(one, experience) for one in (agent, other)]
    equal(saved[1], steps, "train_step_counter of the restored agent")
    if not _same(saved[0], states):
        broken("those of the saved one", "others", "variables of the restored agent")
    if not np.allclose(losses[0], losses[1], rtol=1e-4, equal_nan=True):
        hint = "Something that the loss depends on is not in the checkpoint."
        broken(losses[0], losses[1], "next loss of the restored agent", hint)


def _same(left: list[Any], right: list[Any]) -> bool:
    """Equal, but for variables that one of them has not created yet."""
    return all(np.allclose(a, b) for a, b in zip(left, right, strict=False))


@RULES.check("exports")
def _exports(subject: _Subject) -> None:
    agent = subject.new()
    saver = policy_saver.PolicySaver(agent.policy, train_step=agent.train_step_counter)
    agent.train(subject.experience(agent))
    with tempfile.TemporaryDirectory() as directory:
        saver.save(directory)
        loaded = tf.saved_model.load(directory)
        action = loaded.action(subject.environment.reset()).action
        _in_spec(agent.action_spec, action, "actions of the exported policy")
        equal(_steps(agent), int(loaded.get_train_step()), "exported train step")
        kept = [v.numpy() for v in loaded.model_variables]
    if not _same([v.numpy() for v in agent.policy.variables()], kept):
        broken("those of the agent", "others", "variables of the exported policy")
