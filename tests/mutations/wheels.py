"""Faults in what is brought to machines, and in who replaces whom there."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

HOUSE = ("tests/unit/wheelhouse/test_house.py",)
CHOOSING = ("tests/unit/wheelhouse/test_wheels.py",)
BRINGING = ("tests/unit/platforms/ssh/test_bringing.py",)
OUTDATED = ("tests/unit/platforms/agents/test_outdated.py",)
CARRIED = ("tests/unit/trial_runtime/test_carried.py",)

WHEELS: tuple[Mutation, ...] = (
    Mutation(
        "a-wheel-on-the-disk-is-believed",
        7,
        "a module that somebody has changed in the cache is run on all machines",
        "dispatcher/wheelhouse/wheel_cache.py",
        "return path.is_file() and digest_of(path) == wheel.digest",
        "return path.is_file()",
        HOUSE,
    ),
    Mutation(
        "a-wheel-that-was-fetched-is-believed",
        7,
        "what an index gave instead of what is on the list is kept",
        "dispatcher/wheelhouse/wheel_cache.py",
        "if came.is_file() and digest_of(came) == wheel.digest:",
        "if came.is_file():",
        HOUSE,
    ),
    Mutation(
        "a-machine-believes-what-arrives",
        7,
        "a wheel that was damaged on its way is unpacked",
        "dispatcher/remote_python/on_host/unwheel.py",
        "if digest.hexdigest() != wanted:",
        "if not digest.hexdigest():",
        BRINGING,
    ),
    Mutation(
        "ours-come-before-a-machines-own",
        9,
        "a trial's torch meets a numpy that it was not built for",
        "trial_runtime/carried.py",
        "    sys.path += [folder for folder in last if folder not in sys.path]",
        "    sys.path[:0] = [folder for folder in last if folder not in sys.path]",
        CARRIED,
    ),
    Mutation(
        "any-python-takes-what-was-brought-for-another",
        9,
        "a trial with a Python of its own fails on a module that was built for the agent's",
        "trial_runtime/carried.py",
        "if os.path.basename(os.path.dirname(folder)) == tag]",
        "if tag and folder]",
        CARRIED,
    ),
    Mutation(
        "what-was-brought-is-found-by-ours-alone",
        9,
        "a trial that imports numpy before trial_runtime fails where it was brought",
        "trial_runtime/agent/runners/environment.py",
        "    if carried.are_there():",
        "    if not carried.are_there():",
        CARRIED,
    ),
    Mutation(
        "a-machines-own-sitecustomize-is-hidden",
        9,
        "what a machine's administrator sets up for each Python is not set up for trials",
        "trial_runtime/agent/every_python/sitecustomize.py",
        "    if spec is not None and spec.loader is not None:",
        "    if spec is None:",
        CARRIED,
    ),
    Mutation(
        "a-wheel-for-a-later-glibc-fits",
        9,
        "what was brought cannot be loaded",
        "dispatcher/wheelhouse/pythons.py",
        "            and built_for <= self.libc_version\n",
        "",
        CHOOSING,
    ),
    Mutation(
        "an-old-agent-is-replaced-while-trials-run",
        4,
        "an upgrade of the head starts trials again",
        "dispatcher/platforms/agents/driver.py",
        "done = self._joined and self._check.all_ended and self._acknowledged == self._received",
        "done = self._joined and self._acknowledged == self._received",
        OUTDATED,
    ),
    Mutation(
        "an-old-agent-leaves-before-its-words-are-safe",
        4,
        "the end of a trial is lost with the agent that told it",
        "dispatcher/platforms/agents/driver.py",
        "done = self._joined and self._check.all_ended and self._acknowledged == self._received",
        "done = self._joined and self._check.all_ended",
        OUTDATED,
    ),
    Mutation(
        "an-old-agent-goes-on-for-ever",
        9,
        "new trials run the code of the version before as long as there are any",
        "dispatcher/platforms/agents/driver.py",
        "            slots = 0\n",
        "            slots = hello.slots\n",
        OUTDATED,
    ),
)
