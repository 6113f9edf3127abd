"""Faults that a stranger planted and that no test saw, or not the test that should."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

#: Interleavings of the tuner host's threads.
SCHEDULES = "tests/sim/test_tuner_host_schedules.py"

#: Worlds in which weights are files.
FILES = "tests/sim/test_seeds.py::test_children_have_their_parents_weights_whatever_happens"

#: Worlds in which authors' threads stand still.
STANDING = "tests/sim/test_seeds.py::test_each_stall_is_named_and_nothing_else"

UNSEEN: tuple[Mutation, ...] = (
    Mutation(
        "a-delivery-that-stands-still-is-no-stall",
        10,
        "an experiment stands at a lock for ever, and nobody is told",
        "dispatcher/core/stalls.py",
        "        return stuck_delivery(state) is not None",
        "        return False",
        (STANDING,),
    ),
    Mutation(
        "waits-that-are-not-ours-count-only-if-all-are",
        10,
        "an experiment is ended as a deadlock while somebody else's wait would soon be over",
        "dispatcher/core/stalls.py",
        'return any(state.waits[t].mode == "foreign" for t in state.blocked)',
        'return all(state.waits[t].mode == "foreign" for t in state.blocked)',
        (STANDING,),
    ),
    Mutation(
        "a-stall-is-named-while-a-request-computes",
        10,
        "an experiment fails while its tuner thinks",
        "dispatcher/core/stalls.py",
        "    if state.running or state.queued or state.backoff or state.open:",
        "    if state.running or state.queued or state.backoff:",
        (STANDING,),
    ),
    Mutation(
        "a-stall-leaves-out-the-delivery-that-stands-still",
        10,
        "the stacks of a stall lack the one that holds all others up",
        "dispatcher/core/stalls.py",
        "stuck = (*list(state.delivering)[:1], *state.blocked)[:64]",
        "stuck = tuple(state.blocked)[:64]",
        (STANDING,),
    ),
    Mutation(
        "a-manifest-is-published-where-the-path-leads-by-now",
        7,
        "the manifest of an attempt that was given up names files that were set aside",
        "trial_runtime/weights/saving.py",
        "raw = publish_manifest(located.path, manifest, at)",
        "raw = publish_manifest(located.path, manifest)",
        (FILES,),
    ),
    Mutation(
        "who-comes-later-replaces-the-weights-of-another-attempt",
        7,
        "an attempt that was given up takes its successor's weights from the children",
        "trial_runtime/weights/saving.py",
        'if before.writer not in ("", author):',
        'if before.writer not in ("", author) and not author:',
        ("tests/faults/storage/test_zombie.py",),
    ),
    Mutation(
        "an-empty-folder-is-left-to-whoever-holds-it",
        7,
        "an attempt that was given up just before its first file writes among its successor's",
        "trial_runtime/agent/preparing.py",
        "                if attempt > 1:  # one that was given up may hold it,",
        "                if attempt > 9:  # one that was given up may hold it,",
        (FILES,),
    ),
    Mutation(
        "what-lies-there-counts-as-ones-own",
        7,
        "children inherit from an attempt that was given up and published in the same moment",
        "trial_runtime/weights/plain.py",
        "    if found != writer and found.rpartition",
        '    if found == "" and found.rpartition',
        ("tests/unit/weights/test_plain.py",),
    ),
    Mutation(
        "a-stop-is-not-said-again-on-rejoin",
        9,
        "a stop that a broken connection took is never heard of; the trial runs on",
        "dispatcher/core/transitions/worker.py",
        "            if trial.attempt_state is AttemptState.STOPPING:\n"
        "                out.append(stop_of(state, trial))  # it may never have heard of it",
        "            if trial.attempt_state is AttemptState.STOPPING and trial_id < 0:\n"
        "                out.append(stop_of(state, trial))  # it may never have heard of it",
    ),
    Mutation(
        "a-ring-of-waits-is-looked-for-along-one-parent-only",
        1,
        "requests that wait for one another stand still for ever",
        "dispatcher/core/waits.py",
        "        for above in wait.missing:\n            if above not in came_from:",
        "        for above in list(wait.missing)[:1]:\n            if above not in came_from:",
    ),
    Mutation(
        "held-children-do-not-count-as-ahead",
        8,
        "a tuner that proposes children early is asked without end",
        "dispatcher/core/asking.py",
        "    if len(state.blocked) + len(state.held) >= state.lookahead:",
        "    if len(state.blocked) >= state.lookahead:",
        ("tests/unit/core/test_opening.py",),
    ),
    Mutation(
        "a-new-head-forgives-the-killed",
        9,
        "a trial that was being killed when its head ended goes on",
        "dispatcher/core/transitions/user.py",
        "if trial.attempt_state is AttemptState.STOPPING and trial.kill_reason is None:",
        "if trial.attempt_state is AttemptState.STOPPING:",
    ),
    Mutation(
        "an-older-digest-said-again-counts",
        7,
        "children look for weights that were replaced",
        "dispatcher/core/transitions/attempt.py",
        "if event.seq <= trial.weights_seq or trial.save_path is None:",
        "if trial.save_path is None:",
        ("tests/unit/core/test_attempts.py",),
    ),
    Mutation(
        "ready-said-twice-delivers-twice",
        2,
        "a tuner is told results twice",
        "dispatcher/core/apply.py",
        "    if state.host_ready:\n        return False\n",
        "    if state.host_ready and state.epoch < 0:\n        return False\n",
        ("tests/unit/core/test_restart.py",),
    ),
    Mutation(
        "words-not-yet-applied-are-acknowledged-with-a-users-request",
        4,
        "a head that dies at that moment loses what an agent has forgotten by then",
        "dispatcher/engine.py",
        'self._turn([_Fact("", event) for event in handled.events], last=False)',
        'self._turn([_Fact("", event) for event in handled.events], last=True)',
    ),
    Mutation(
        "words-in-the-outbox-are-not-held",
        9,
        "a trial that is over is run again, since its end was still on its way",
        "trial_runtime/agent/head_link.py",
        "holds = sorted(set(self._holds()) | outbox.attempts())",
        "holds = sorted(set(self._holds()))",
    ),
    Mutation(
        "a-draining-experiment-starts-what-waits",
        9,
        "bequeath stop --drain does not end before all that was proposed has run",
        "dispatcher/core/coupling.py",
        "    if state.phase is Phase.RUNNING:\n        _end_backoffs(state)",
        "    if state.phase in (Phase.RUNNING, Phase.DRAINING):\n        _end_backoffs(state)",
    ),
    Mutation(
        "what-has-been-answered-takes-the-next-wait-along",
        5,
        "a request that was asked again at once is never woken",
        "dispatcher/tuner_host/gate.py",
        "if wait is not None and wait.request is request:\n                self._forget(wait)",
        "if wait is not None:\n                self._forget(wait)",
        (SCHEDULES,),
    ),
    Mutation(
        "an-answer-is-overtaken-by-a-state-that-has-it",
        2,
        "a tuner that is restored has a proposal twice",
        "dispatcher/tuner_host/requests.py",
        "        # Said before the count goes down: a snapshot must not overtake its answers.\n"
        "        request.say(event)\n",
        "        self._floor.leave(request)\n        request.say(event)\n",
        (SCHEDULES,),
    ),
    Mutation(
        "what-a-replay-answers-stands-over-what-the-trial-ran-with",
        2,
        "after a restart results come with parameters that nobody ran",
        "dispatcher/tuner_host/restore.py",
        "        self._requests.generated[trial] = wanted  # what the trial really ran with\n",
        "",
        (SCHEDULES,),
    ),
    Mutation(
        "a-wait-that-the-head-refused-stands-in-a-repetition",
        2,
        "a tuner that is rebuilt stands for 30 s in each of them",
        "dispatcher/tuner_host/restore.py",
        "                self._refusals.setdefault(trial, []).append(_Refusal.of(call))",
        "                pass",
        ("tests/integration/tuner_host/test_restoring.py",),
    ),
    Mutation(
        "of-the-last-generations-one-less-stays",
        7,
        "parents that the policy keeps are deleted",
        "dispatcher/weight_keeper/retention.py",
        "    return [trial_id for trial_id, g in generations.items() if g > newest - count]",
        "    most = newest - count + (count > 1)\n"
        "    return [trial_id for trial_id, g in generations.items() if g > most]",
        ("tests/unit/weight_keeper/test_retention.py",),
    ),
    Mutation(
        "only-who-waits-still-has-awaited-somebody",
        7,
        "the parent of the next child is deleted while that is being proposed",
        "dispatcher/store/weights_ledger.py",
        "WHERE t.state IN ('open', 'blocked', 'parked') AND j.kind",
        "WHERE t.state IN ('blocked') AND j.kind",
        ("tests/unit/store/test_weights_ledger.py",),
    ),
    Mutation(
        "a-tuner-state-older-than-the-base-will-do",
        2,
        "a tuner is given a state without the calls that followed, for these were folded away",
        "dispatcher/store/journal.py",
        '"WHERE n >= (SELECT coalesce(max(n), 0) FROM bases) ORDER BY n DESC"',
        '"ORDER BY n DESC"',
        ("tests/unit/store/test_compaction.py",),
    ),
    Mutation(
        "time-without-a-head-counts-where-settings-changed",
        8,
        "maxExperimentDuration is over after a pause in which the file was edited",
        "dispatcher/core/transitions/user.py",
        "        state.active_s += max(0.0, state.last_event_at - state.started_at)",
        "        changed = event.settings is not None\n"
        "        until = state.now if changed else state.last_event_at\n"
        "        state.active_s += max(0.0, until - state.started_at)",
    ),
)
