"""Numbers as targets, a loss of single rows, linear: by cutting planes or bundle-dca."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from streamcut.config import TrainOptions
from streamcut.io.manifest import Manifest
from streamcut.jobs.binary import BinaryJob
from streamcut.losses import row_loss
from streamcut.losses.pointwise import PointwiseRisk


@dataclass(frozen=True)
class RegressionJob(BinaryJob):
    """A BinaryJob without labels."""

    task: ClassVar[str] = "regression"

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        return cls.of(options, manifest, PointwiseRisk(row_loss(options.chosen_loss, options.as_dict())), None, False)
