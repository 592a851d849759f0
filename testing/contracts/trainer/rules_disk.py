"""Rules of what is on disk: summaries, checkpoints, policies."""

from __future__ import annotations

import itertools
import os

from testing.contracts._rules import broken, not_exercised
from testing.contracts.trainer import compare, disk, subjects
from testing.contracts.trainer.lab import Lab
from testing.contracts.trainer.observe import ROOT_DIR, Run
from testing.contracts.trainer.rulebook import RULES
from testing.contracts.trainer.watch import Watch


@RULES.check("summary-steps")
def _summary_steps(lab: Lab) -> None:
    looked = False
    for run in lab.both():
        for tag, seen in _summaries(lab, run).items():
            name = tag.rpartition("/")[2]
            # `Metrics_vs_EnvironmentSteps/...` stands against another step by design.
            if name not in run.series or "_vs_" in tag:
                continue
            looked = True
            due = [line.step for line in run.series[name]]
            if seen != due:
                _other_steps(run, tag, due, seen)
    if not looked:
        not_exercised("no summary has the name of a log series")


def _summaries(lab: Lab, run: Run) -> dict[str, list[int]]:
    lab.need("root_dir")
    if not run.summaries:
        not_exercised("no summaries were written below root_dir")
    return run.summaries


def _other_steps(run: Run, tag: str, due: list[int], seen: list[int]) -> None:
    expected, found, _ = compare.difference(due, seen)
    sizes = run.sizes
    hint = "write summaries with the step of the log line"
    steps = {b - a for a, b in itertools.pairwise(seen)}
    if steps <= {sizes.steps * sizes.batch, sizes.steps}:
        hint = "these are environment steps: pass the step of the log line"
    elif len(seen) < len(due):
        hint = "summaries are missing: is the default writer set during the whole run?"
    elif sorted(set(seen)) == due:
        hint = "each comes several times: is it written by two places?"
    elif len(set(seen)) == 1:
        hint = "the step never changes: was it captured once?"
    broken(f"{tag} at steps {expected}", f"{tag} at steps {found}", run.title, hint)


@RULES.check("summary-complete")
def _summary_complete(lab: Lab) -> None:
    for run in lab.both():
        late = {
            tag: len(steps) - len(run.early_summaries.get(tag, ()))
            for tag, steps in _summaries(lab, run).items()
        }
        missing = {tag: count for tag, count in late.items() if count}
        if not missing:
            continue
        total = sum(len(steps) for steps in run.summaries.values())
        broken(
            f"all {total} summaries in the event files",
            f"{total - sum(missing.values())}; missing: "
            + compare.some(f"{count} of {tag}" for tag, count in missing.items()),
            f"{run.title}, when the trainer had returned",
            "flush or close the summary writer before returning",
        )


@RULES.check("checkpoint-final")
def _checkpoint_final(lab: Lab) -> None:
    lab.need("root_dir")
    run = lab.ended(lab.main)
    checkpoint = disk.latest_checkpoint(run.root)
    if checkpoint is None:
        broken(
            f"a checkpoint after {run.sizes.loops} loops",
            "no checkpoint below root_dir",
            run.title,
            "save one after each loop, and always after the last",
        )
    where = f"{run.title}, {_short(checkpoint.path, run)}"
    _agent_saved(run, checkpoint, where)
    # A metric that is passed in and ignored is another rule's matter.
    if subjects.METRIC in run.series:
        _metric_saved(run, checkpoint, where)


def _agent_saved(run: Run, checkpoint: disk.Checkpoint, where: str) -> None:
    found = checkpoint.near(subjects.AGENT_MARK)
    if found is None:
        broken(
            "the agent in the checkpoint",
            f"variables of it are missing among: {_objects(checkpoint)}",
            where,
            "tf.train.Checkpoint(agent=agent, ...): the agent itself, not its policy",
        )
    key, calls = found
    if calls != run.train_calls:
        broken(
            f"an agent trained {run.train_calls} times",
            f"an agent trained {calls} times",
            where,
            "is the last loop checkpointed, whatever the interval, "
            "and after its training?",
        )
    fresh = _fresh_agent(run)
    _restored(checkpoint, key, fresh, where)
    if fresh.calls != run.train_calls:
        broken(
            f"a fresh agent restores to {run.train_calls} train calls",
            f"to {fresh.calls}",
            where,
            "is all of the agent saved, in one checkpoint?",
        )


def _metric_saved(run: Run, checkpoint: disk.Checkpoint, where: str) -> None:
    found = checkpoint.near(subjects.METRIC_MARK)
    if found is None:
        broken(
            f"the metric {subjects.METRIC} in the checkpoint",
            f"it is missing among: {_objects(checkpoint)}",
            where,
            "tf.train.Checkpoint(..., **{metric.name: metric for metric in metrics})",
        )
    key, total = found
    if total not in {run.metric_total, *_counted(run)}:
        broken(
            f"{subjects.METRIC} = {run.metric_total}",
            f"{subjects.METRIC} = {total}",
            where,
            "is the last loop checkpointed?",
        )
    fresh = subjects.Interactions()
    _restored(checkpoint, key, fresh, where)


def _counted(run: Run) -> set[int]:
    """What the metric counted within the loops, if it counts at all."""
    return run.collected if run.metric_total in run.collected else set()


def _restored(checkpoint: disk.Checkpoint, key: str, fresh: object, where: str) -> None:
    try:
        checkpoint.restore(checkpoint.holder(key), fresh)
    except Exception as error:
        broken(
            f"{type(fresh).__name__} restores from '{checkpoint.holder(key)}'",
            str(error).splitlines()[0],
            where,
            "save the object itself, not some of its variables",
        )


def _fresh_agent(run: Run) -> subjects.MarkedAgent:
    watch = Watch(limit=100)
    return subjects.agent(subjects.environment(run.sizes.batch, watch, 0), watch)


def _objects(checkpoint: disk.Checkpoint) -> str:
    return compare.some(sorted({key.split("/")[0] for key in checkpoint.integers}))


def _short(path: str, run: Run) -> str:
    """A path as seen from `root_dir`."""
    return os.path.relpath(path, run.root / ROOT_DIR)


@RULES.check("policy-final")
def _policy_final(lab: Lab) -> None:
    lab.need("root_dir")
    run = lab.ended(lab.single)
    exports = run.exports[-1]
    if not exports:
        if not lab.offer.takes("save_policy"):
            not_exercised("no policy is exported, and there is no save_policy")
        broken(
            "an exported policy, as save_policy=True",
            "no saved_model.pb below root_dir",
            run.title,
            "tf_agents.policies.policy_saver.PolicySaver(agent.policy).save(...)",
        )
    _nothing_overwritten(run)
    _final_exported(run)


def _nothing_overwritten(run: Run) -> None:
    pairs = zip(run.exports, run.exports[1:], strict=False)
    for loop, (before, after) in enumerate(pairs, 1):
        if set(after) - set(before):
            continue  # With a new one beside it, another may be called `latest`.
        for directory, fingerprint in before.items():
            if after.get(directory, fingerprint) != fingerprint:
                broken(
                    "each export in a directory of its own",
                    f"{_short(directory, run)} was written again",
                    f"{run.title}, after loop {loop}",
                    "does the number in its name advance? "
                    "Is the step metric among the driver's observers?",
                )


def _final_exported(run: Run) -> None:
    exports = run.exports[-1]
    final = [d for d in exports if disk.trained(d, run.train_counter)]
    names = compare.some(sorted(_short(directory, run) for directory in exports))
    if not final:
        broken(
            f"a policy of the agent after {run.train_calls} train calls",
            f"none such in: {names}",
            run.title,
            "export after the last loop too, whatever the interval",
        )
    due = [disk.action_after(run.train_counter)] * run.sizes.batch
    acted = [_acts(directory, run) for directory in final]
    if due not in acted:
        broken(
            f"a loaded policy acts {due}",
            str(acted[0]),
            f"{run.title}, {_short(final[0], run)}",
            "is agent.policy saved, with its variables as they are now?",
        )


def _acts(directory: str, run: Run) -> object:
    try:
        return disk.act(directory, run.sizes.batch)
    except Exception as error:
        return f"it raises {type(error).__name__}: {str(error).splitlines()[0]}"
