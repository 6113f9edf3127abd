"""Faults in backends of other packages, and in who may share whose weights."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

PLATFORMS: tuple[Mutation, ...] = (
    Mutation(
        "a-foreign-backend-speaks-for-others",
        9,
        "somebody else's backend ends trials that run elsewhere",
        "dispatcher/engine.py",
        "        return trial.worker is None or self._owner_of(trial.worker) == owner\n",
        "        return True\n",
        ("tests/unit/engine/test_foreign_words.py",),
    ),
    Mutation(
        "a-foreign-backend-says-what-it-likes",
        9,
        "somebody else's backend stops the experiment",
        "dispatcher/backends/threaded.py",
        '            raise ProtocolError(f"it says {kind.__name__}")\n',
        "            return\n",
        ("tests/unit/backends/test_threaded.py",),
    ),
    Mutation(
        "more-is-acknowledged-than-is-on-disk",
        4,
        "a service forgets a result that the journal does not have yet",
        "dispatcher/backends/threaded.py",
        "            self._open = False\n            self.batch = events\n",
        "            self.batch = events\n",
        ("tests/unit/backends/test_threaded.py",),
    ),
    Mutation(
        "any-version-of-the-protocol-fits",
        9,
        "a package for another version fails in the middle of an experiment",
        "dispatcher/experiment/plugged.py",
        "    if version != PROTOCOL:\n",
        "    if version is None:\n",
        ("tests/unit/experiment/test_plugged.py",),
    ),
    Mutation(
        "the-last-share-of-a-domain-wins",
        7,
        "two folders that are not the same one are taken for one share",
        "dispatcher/wiring/storage_domains.py",
        "            elif known != token:\n",
        "            elif known == token:\n",
        ("tests/unit/wiring/test_storage_domains.py",),
    ),
    Mutation(
        "a-wrong-share-joins",
        7,
        "children look for weights on a machine that has never seen them",
        "dispatcher/backends/agents/driver.py",
        "        if wrong:  # the next one",
        "        if False:  # the next one",
        ("tests/unit/backends/test_shares.py",),
    ),
    Mutation(
        "an-agent-elsewhere-looks-at-no-root",
        7,
        "a machine whose share is not mounted takes trials",
        "trial_runtime/agent/link/probing.py",
        "    return bool(config.root_token or (config.domain and config.remote is None))\n",
        "    return bool(config.root_token)\n",
        ("tests/unit/trial_runtime/test_first_of_a_domain.py",),
    ),
)
