"""What a policy that chooses at random gets: the figure to beat."""

from __future__ import annotations

from tf_agents.drivers import dynamic_step_driver
from tf_agents.policies import random_tf_policy
from tf_agents.utils import common

from trainer.problems import Problem, Reference
from trainer.recent import RecentMean

INTERACTIONS = 5000


def measure_random(problem: Problem, interactions: int = INTERACTIONS) -> Reference:
    """The random policy's mean reward and regret on `problem`.

    Args:
      problem: measuring acts on its environment, so pass one of its own.
      interactions: how many to measure over, rounded up to whole batches.
    """
    environment = problem.environment
    steps = -(-interactions // environment.batch_size) * environment.batch_size
    rewards = RecentMean("rewards", lambda t: t.reward, steps)
    regrets = RecentMean("regrets", problem.regret, steps)
    driver = dynamic_step_driver.DynamicStepDriver(
        env=environment,
        policy=random_tf_policy.RandomTFPolicy(
            environment.time_step_spec(), environment.action_spec()
        ),
        num_steps=steps,
        observers=[rewards, regrets],
    )
    common.function(driver.run)()
    return Reference(
        average_return=float(rewards.result()),
        regret=float(regrets.result()),
        source=f"measured over {steps:,} interactions",
    )
