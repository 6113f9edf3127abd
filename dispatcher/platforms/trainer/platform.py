"""The platform ``trainer``: an agent in each of several TrainJobs of Kubeflow Trainer v2."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dispatcher.platforms.kubernetes.platform import PodPlatform
from dispatcher.platforms.trainer.section import TrainerSection

if TYPE_CHECKING:
    from dispatcher.findings import Finding


class TrainerPlatform(PodPlatform[TrainerSection]):
    """The platform whose allocations are TrainJobs."""

    section = TrainerSection

    def inspect(self, section: TrainerSection) -> Iterable[Finding]:
        """See :meth:`Platform.inspect`: as for pods, and what the training runtime says of them."""
        from dispatcher.platforms.trainer.inspection import inspect_runtime

        yield from super().inspect(section)
        yield from inspect_runtime(section)
