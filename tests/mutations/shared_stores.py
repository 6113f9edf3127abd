"""Faults of shared stores of weights, and of the tuner that lives on one."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CORE = "tests/unit/core/test_store_retention.py"
_WAITS = "tests/unit/core/test_version_waits.py"
_SWEEP = "tests/unit/weight_keeper/test_store_sweep.py"
_GATE = "tests/unit/tuner_host/test_gate_versions.py"
_STORES = "dispatcher/core/stores.py"
_STORE = "dispatcher/core/transitions/store.py"

SHARED_STORES = (
    Mutation(
        "a-version-is-made-from-any-other",
        7,
        "of two trials that publish at once one undoes what the other has trained",
        _STORE,
        "entered = not refusal and not number and event.base == len(versions)",
        "entered = not refusal and not number",
        ("tests/unit/core/test_stores.py",),
    ),
    Mutation(
        "an-offer-that-is-repeated-is-another",
        2,
        "after a head's death a publish is entered twice, or refused although it was accepted",
        _STORE,
        "    return event.base + 1 if same else 0",
        "    return 0",
        ("tests/unit/core/test_stores.py",),
    ),
    Mutation(
        "what-waits-for-an-attempt-pins-nothing",
        7,
        "a version goes while a trial that reads it waits for its next attempt",
        _STORES,
        "    for collection in (state.held, state.queued, state.running, state.backoff):",
        "    for collection in (state.running,):",
        (_CORE,),
    ),
    Mutation(
        "a-publisher-may-lose-what-it-merges-with",
        7,
        "a trial that was told of a version cannot read it any more",
        _STORES,
        "(*trial.reads, *trial.heard)",
        "trial.reads",
        (_CORE,),
    ),
    Mutation(
        "a-request-may-see-what-goes",
        7,
        "a tuner that looks and then pins is refused, although it did nothing wrong",
        _STORES,
        "oldest_asked = min(asked, default=state.version_serial)",
        "oldest_asked = state.version_serial",
        (_CORE,),
    ),
    Mutation(
        "holding-is-forgotten",
        7,
        "later trials of a round are refused, for others of it have published meanwhile",
        _STORE,
        "        state.held_versions[event.store] = event.numbers",
        "        pass",
        (_CORE,),
    ),
    Mutation(
        "a-tuner-that-is-restored-holds-anew",
        7,
        "what a tuner holds goes while its process is started again",
        _STORE,
        "    if not state.host_ready:\n        return False\n    if event.numbers:",
        "    if event.numbers:",
        (_CORE,),
    ),
    Mutation(
        "folders-are-judged-after-the-question",
        7,
        "a version that was accepted while the keeper looked is removed",
        "dispatcher/weight_keeper/store_sweep.py",
        "        leftovers = over - self._kept - self._due",
        "        leftovers = over - self._due",
        (_SWEEP,),
    ),
    Mutation(
        "files-go-with-the-version-that-wrote-them",
        7,
        "versions that stay lose tensors that they inherited",
        "dispatcher/weight_keeper/store_sweep.py",
        "drop=sorted(drop), keep=granted.kept)",
        "drop=sorted(drop), keep={})",
        (_SWEEP,),
    ),
    Mutation(
        "a-version-wakes-only-who-waits-for-this-very-number",
        5,
        "a request waits for ever, for two versions came at once",
        "dispatcher/tuner_host/gate.py",
        "due = number >= wait.version if wait.version else by in wait.parents",
        "due = number == wait.version if wait.version else by in wait.parents",
        (_GATE, _WAITS),
    ),
    Mutation(
        "who-publishes-nothing-is-waited-for",
        5,
        "a request waits for ever for a version by a trial that has ended",
        "dispatcher/core/waits.py",
        'answer = failed or Answer("failed", parent, Verdict(FailReason.NO_VERSION))',
        "continue",
        (_WAITS,),
    ),
    Mutation(
        "a-merge-counts-one-side",
        7,
        "steps that were trained beside others are lost",
        "trial_runtime/merging.py",
        "theirs + (mine - base))",
        "mine)",
        ("tests/unit/trial_runtime/test_merging.py",),
    ),
    Mutation(
        "a-lagging-baseline",
        9,
        "ENAS learns what it happened to draw while the shared weights got better",
        "tuners/enas/tuner.py",
        "baseline_decay: float = 0.8",
        "baseline_decay: float = 0.99",
        ("tests/unit/tuners/test_enas.py",),
    ),
    Mutation(
        "the-prior-outweighs-the-reward",
        9,
        "ENAS learns no skip connections in a deep network",
        "tuners/enas/controller.py",
        "1 / max(1, walk.choosing_layers)",
        "1",
        ("tests/unit/tuners/test_enas.py",),
    ),
    Mutation(
        "trials-of-a-round-read-different-versions",
        9,
        "architectures of one round are judged by different weights",
        "tuners/enas/tuner.py",
        "            pinned = self._pin\n",
        "            pinned = omega.latest()\n",
        ("tests/unit/tuners/test_enas.py",),
    ),
    Mutation(
        "nothing-goes-at-the-end",
        7,
        "what stays of a quick experiment depends on how quick it was",
        "dispatcher/head.py",
        "if state.phase is Phase.COMPLETED:",
        "if state.phase is Phase.FAILED:",
        ("tests/faults/test_shared_stores.py", "tests/integration/experiment/test_retention.py"),
    ),
)
