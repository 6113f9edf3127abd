"""The weight keeper: decides which weights are kept, and is the only thing that deletes any.

It deletes what no live trial, no open request, no pin and no policy needs, by file: a tensor
that a child inherited lies in its ancestor's file, which stays for as long as a kept manifest
refers to it. A removal is written down first, so that a crash in between is finished and a
proposal that names it is refused. The best trial's weights stay under every policy.

It never decides who may inherit (the core does), never writes weights, and never looks at a
folder that no trial of its experiment has claimed.

Read ``retention.py`` first (what may go: pure), then ``keeper.py`` (in what order it goes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dispatcher.late_names import fetched_late

if TYPE_CHECKING:
    from dispatcher.weight_keeper.keeper import Announce, WeightKeeper
    from dispatcher.weight_keeper.ledger import KeptTrial, Ledger, RemovedWeights
    from dispatcher.weight_keeper.plan import DiskUse, Doomed, GcPlan, TrialUse
    from dispatcher.weight_keeper.retention import Decision, Keep, Need, Policy, TrialView, decide

#: Where each name is. It is fetched at its first use: who needs one does not wait for all.
_HOMES = {
    "Announce": "keeper",
    "WeightKeeper": "keeper",
    "KeptTrial": "ledger",
    "Ledger": "ledger",
    "RemovedWeights": "ledger",
    "DiskUse": "plan",
    "Doomed": "plan",
    "GcPlan": "plan",
    "TrialUse": "plan",
    "Decision": "retention",
    "Keep": "retention",
    "Need": "retention",
    "Policy": "retention",
    "TrialView": "retention",
    "decide": "retention",
}

__all__ = [
    "Announce",
    "Decision",
    "DiskUse",
    "Doomed",
    "GcPlan",
    "Keep",
    "KeptTrial",
    "Ledger",
    "Need",
    "Policy",
    "RemovedWeights",
    "TrialUse",
    "TrialView",
    "WeightKeeper",
    "decide",
]

__getattr__ = fetched_late(__name__, _HOMES)
