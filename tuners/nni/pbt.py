"""Population based training whose trials get the folders of their checkpoints."""

from __future__ import annotations

import os
from typing import Any

from tuners.inheriting import without
from tuners.pbt import PBTTuner

LOAD, SAVE = "load_checkpoint_dir", "save_checkpoint_dir"


class NniPBTTuner(PBTTuner):
    """:class:`~tuners.pbt.PBTTuner` in NNI's words: both folders stand in the parameters, and
    that of a first generation to load from is the one it saves to, where nothing is yet.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        all_checkpoint_dir: folder of all checkpoints; null: ``NNI_CHECKPOINT_DIRECTORY``.
        population_size: members.
        factor: exploration multiplies by ``1 + factor`` or ``1 - factor``.
        resample_probability: how likely a hyperparameter is drawn anew instead.
        fraction: how large bottom and top are, at most 0.5.
        seed: the same seed gives the same answers under the same order of results; null draws one.
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        all_checkpoint_dir: str | None = None,
        population_size: int = 10,
        factor: float = 0.2,
        resample_probability: float = 0.25,
        fraction: float = 0.2,
        seed: int | None = 0,
    ) -> None:
        super().__init__(
            optimize_mode,
            population_size,
            fraction=fraction,
            factor=factor,
            resample_probability=resample_probability,
            seed=seed,
        )
        self.all_checkpoint_dir = all_checkpoint_dir

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Does what the base does, with the folders under NNI's names."""
        parameters = super().generate_parameters(parameter_id, **kwargs)
        save = parameters.pop("save_path")
        parameters[LOAD] = self._folder(parameters.pop("restore_path", save))
        parameters[SAVE] = self._folder(save)
        return parameters

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; the folders are no hyperparameters."""
        own = without(parameters, (LOAD, SAVE))
        super().receive_trial_result(parameter_id, own, value, **kwargs)

    def _folder(self, path: str) -> str:
        above = self.all_checkpoint_dir or os.environ.get("NNI_CHECKPOINT_DIRECTORY", "checkpoint")
        return os.path.join(os.path.abspath(os.path.expanduser(above)), path)
