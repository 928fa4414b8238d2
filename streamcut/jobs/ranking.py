"""Ranking inside queries, ordinal regression, ROC area: the mean hinge loss of pairs of rows that ought to be ordered.

C multiplies the mean loss times the number of rows, C̄ = C·m, as for two classes. With Q queries that have
pairs and |P| pairs: svm_rank -l 1 (all pairs) has c = C·m·N/|P| for N queries, -l 2 (the mean over queries) c = C·m·N/Q, which
are the normalisations "pairs" and "queries"; svm_perf -l 10 has c = C·m/100.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.plan import Needs
from streamcut.io.manifest import Manifest
from streamcut.jobs.global_risk import GlobalJob, check_weights
from streamcut.jobs.linear import bundle_size, threads_wanted
from streamcut.losses.pairs import Pairs, PairsOfLevels
from streamcut.oracles.global_risk import GlobalOracle
from streamcut.oracles.pair_curvature import NEAR, CurvedPairsOracle

_MATRICES = 4  # in addition to two per lane


class RankingJob(GlobalJob):
    """Tasks "ranking" and "roc-area", which is ranking with two labels."""

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics, found = manifest.statistics, manifest.statistics.labels
        check_weights(manifest, f"task {options.task}")
        if found is not None and len(found) == 1:
            raise BadInputError(f"all {statistics.n_rows:,} rows have label {next(iter(found)):g}; there is nothing to rank")
        if options.task == "roc-area" and (found is None or len(found) > 2):
            raise BadInputError("the area under the ROC curve needs two labels; for more take --task=ranking")
        max_cuts = options.max_cuts or bundle_size(statistics.n_features)
        lanes = plan_lanes(statistics, options.lanes)
        risk: Pairs | PairsOfLevels = Pairs(options.normalisation)
        if (statistics.groups or 1) == 1 and found is not None and len(found) <= PairsOfLevels.MOST:
            risk = PairsOfLevels(tuple(sorted(found)), options.normalisation)
        return cls(options, risk, 0.0, None, False, max_cuts, lanes, threads_wanted(options))

    @property
    def oracle(self) -> type[GlobalOracle]:
        return CurvedPairsOracle if self.solver.curved else GlobalOracle

    def needs(self, manifest: Manifest) -> Needs:
        found = super().needs(manifest)
        if not self.solver.curved:
            return found
        size = ("curvature of the loss", (_MATRICES + 2 * self.workers) * 8 * found.dimension**2)
        return replace(found, vectors=self.solver.vectors, row_bytes=found.row_bytes + 4 * len(NEAR), more=(*found.more, size))

    def warm_up(self, manifest: Manifest) -> None:
        labels = np.array(getattr(self.risk, "labels", np.arange(3.0)))
        self._warm_up(manifest, labels[np.arange(128) % len(labels)])
