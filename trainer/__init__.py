"""A production bandit trainer for TF-Agents.

Drop-in for `tf_agents.bandits.agents.examples.v2.trainer`: call `train`.
"""

from trainer import _tensorflow

_tensorflow.prepare()

from trainer.checkpoints import CheckpointMismatchError as CheckpointMismatchError  # noqa: E402
from trainer.checkpoints import (  # noqa: E402
    restore_and_get_checkpoint_manager as restore_and_get_checkpoint_manager,
)
from trainer.export import NonFiniteLossError as NonFiniteLossError  # noqa: E402
from trainer.export import export_loss_info as export_loss_info  # noqa: E402
from trainer.export import export_metrics as export_metrics  # noqa: E402
from trainer.found import (  # noqa: E402
    UnreadableCheckpointError as UnreadableCheckpointError,
)
from trainer.lock import DirectoryInUseError as DirectoryInUseError  # noqa: E402
from trainer.loop import get_training_loop as get_training_loop  # noqa: E402
from trainer.loop import set_expected_shape as set_expected_shape  # noqa: E402
from trainer.replay import get_replay_buffer as get_replay_buffer  # noqa: E402
from trainer.storage import StorageError as StorageError  # noqa: E402
from trainer.train import TrainSummary as TrainSummary  # noqa: E402
from trainer.train import train as train  # noqa: E402
