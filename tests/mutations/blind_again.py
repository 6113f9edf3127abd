"""A second set of faults that whoever strengthens the tests has not seen: 22, of which two are
spares (:data:`SPARES`). None is planted in ``tests/mutations`` or in ``unseen.py``.

Written against commit 9e5e3d2. The comment above each fault says what it means, so that it can be
planted again where its text has moved: re-anchor it by that meaning, and never make it easier or
harder to find.
"""

from __future__ import annotations

from tests.mutations.mutation import SIM, Mutation

CORE = "tests/unit/core"

# ---- dispatcher/core -------------------------------------------------------------------------

_CORE: tuple[Mutation, ...] = (
    # core, `start_attempt`: a new attempt goes on with the number under which the one before had
    # announced its weights, while its own messages are numbered from 1 again. Scenario: attempt 1
    # publishes as its 51st message and is lost with its host; attempt 2, the same script, publishes
    # as its 51st message, too: that counts as said before. The trial succeeds without weights, its
    # children are refused.
    Mutation(
        "weights-of-a-second-attempt-count-as-said-before",
        7,
        "a trial that was lost and ran again has no weights, and its children never start",
        "dispatcher/core/transitions/attempt.py",
        "    trial.last_seq = trial.weights_seq = trial.passed_over = 0\n",
        "    trial.last_seq = trial.passed_over = 0\n",
        ("tests/unit/core/test_attempts.py",),
    ),
    # core, `head_started`: what the head before this one has found of full disks is kept. The
    # watch of the new head takes each disk for one with room, and tells of room again only after it
    # has told of none. Scenario: the disk runs low, the user stops the experiment, frees 100 GB,
    # resumes: nothing ever starts, "the disk is low".
    Mutation(
        "a-disk-that-was-full-once-is-full-for-the-next-head",
        10,
        "an experiment that was stopped while a disk was low starts nothing after its resume, "
        "whatever was freed",
        "dispatcher/core/transitions/user.py",
        "    state.low_disks.clear()  # it looks for itself\n",
        "",
        (CORE, SIM, "tests/integration/experiment/test_failures.py"),
    ),
    # core, `draining.due`: the bound on a delivery that stands still is counted from the newest
    # delivery, and not from when it began to stand still. Scenario: stallTimeout 10 min; a drain,
    # in which receive_trial_result refits a model for 15 min (which may take ten times
    # stallTimeout), then waits a second for a file lock: the drain ends at once, with all results
    # behind it undelivered.
    Mutation(
        "a-drain-gives-up-a-tuner-that-pauses-after-long-work",
        2,
        "a drain ends with results undelivered, since the tuner stood still for a moment after a "
        "long computation",
        "dispatcher/core/draining.py",
        "        end = min(end, max(state.quiet_since, state.still_since) + bound)\n",
        "        end = min(end, state.quiet_since + bound)\n",
        (CORE, SIM),
    ),
    # core, `reservations._cleared`: the host that is cleared on trial shares the set of running
    # trials with the real one. Scenario: an eight-GPU trial has been overtaken eight times: while a
    # host is looked for that could be kept for it, the books forget what runs there. Its devices
    # and slots are given a second time; when it is lost, those trials are believed to run for ever.
    Mutation(
        "a-host-is-cleared-in-fact-while-one-only-thinks-of-it",
        5,
        "once a large trial has waited for long, more trials run on a host than it has slots, and "
        "a lost host's trials are never tried again",
        "dispatcher/core/reservations.py",
        "    cleared = replace(worker, running=set(worker.running))\n",
        "    cleared = replace(worker)\n",
        ("tests/unit/core/test_reservations.py",),
    ),
    # core, `request.admit`: a save path is claimed before it is known that the rest of the proposal
    # will do, so that a refusal does change something. Scenario: 'trial submit' with save_path
    # "mine" that pins version 7 of a store that has 6; the user mends the pin and submits again:
    # "save path 'mine' belongs to trial 12 already", which never was one. So with a tuner whose
    # request is asked again (onTunerError: retry).
    Mutation(
        "what-is-refused-keeps-its-save-path",
        9,
        "parameters that were refused once for a version that is not there are refused for good, "
        "since their own save path is taken",
        "dispatcher/core/transitions/request.py",
        "    unknown = stores.unknown(state, event.reads)\n"
        "    if unknown is not None:\n"
        "        return unknown\n"
        "    if save_path is not None:\n"
        "        refusal = claim(state, trial.id, save_path)\n"
        "        if refusal is not None:\n"
        "            return refusal\n",
        "    if save_path is not None:\n"
        "        refusal = claim(state, trial.id, save_path)\n"
        "        if refusal is not None:\n"
        "            return refusal\n"
        "    unknown = stores.unknown(state, event.reads)\n"
        "    if unknown is not None:\n"
        "        return unknown\n",
        (f"{CORE}/test_claims.py", SIM),
    ),
)

# ---- dispatcher/engine, store, past, leading, head -------------------------------------------

_KEEPING: tuple[Mutation, ...] = (
    # engine, `turn`: rows of the read model that lag behind are not written before the core lets
    # go of what an ended trial was told. Scenario: a host with 32 trials is lost, most of which had
    # reported their result; their rows lag (eight with a batch), the tuner takes result and end of
    # one in the same frame: its row is written after that, without 'told' and 'number': 'best',
    # 'progress', exports and retention do not know of the result, though the tuner does.
    Mutation(
        "a-row-that-lags-behind-never-has-the-result",
        2,
        "results that the tuner was given are missing from best, progress and exports when many "
        "trials ended at once",
        "dispatcher/engine.py",
        "        self._catch_up(facts)\n",
        "",
        (
            "tests/unit/engine",
            "tests/unit/store",
            "tests/unit/head",
            SIM,
            "tests/integration/store/test_kill.py",
        ),
    ),
    # leading, `UserRequests.update`: what was changed is written down and told to the core, and the
    # next change begins with the settings from before all the same. Scenario: 'experiment update
    # trialConcurrency 8', then 'experiment update maxTrialNumber 500': the concurrency is the old
    # one again, in the core and in the record.
    Mutation(
        "an-update-takes-the-one-before-it-back",
        9,
        "the second 'experiment update' silently undoes the first one",
        "dispatcher/head/user_requests.py",
        "        self._config = config\n        events: list[e.Event]",
        "        events: list[e.Event]",
        ("tests/unit/head/test_user_requests.py",),
    ),
    # past, `read_past`: calls are gathered of events that had no effect as well. Scenario: of two
    # trials that offer a version made from the same one, the second is refused; when the tuner's
    # process starts again it is told "version" of that offer, too, under a number that another
    # trial's has: a request that waits for a version by the second trial goes on in the repetition,
    # and the newest version that the tuner knows of goes back.
    Mutation(
        "what-was-refused-is-told-in-a-repetition",
        2,
        "a tuner that is rebuilt is told of versions that were refused, and of words that were "
        "late, as if they had counted",
        "dispatcher/store/replay/history.py",
        "            if step.counted and call is not None:\n",
        "            if call is not None:\n",
        ("tests/unit/store/test_history.py", SIM),
    ),
)

# ---- dispatcher/channel, backends, ssh -------------------------------------------------------

_REACHING: tuple[Mutation, ...] = (
    # channel, `_AllowList.admit`: the keys of the second door replace those of the first. Scenario:
    # an experiment with one machine that is reached through a tunnel and another that comes to
    # headAddress: the tunnel's socket is bound first; none of the agents behind it is let in, they
    # are "silent", killed and started again, until their machines are given up.
    Mutation(
        "the-second-door-locks-the-first",
        9,
        "with machines behind tunnels and machines that connect by themselves in one experiment, "
        "the former never join",
        "dispatcher/channel/admission.py",
        "        self._keys |= {key.encode() for key in keys}\n",
        "        self._keys = frozenset(key.encode() for key in keys)\n",
        ("tests/unit/head/test_endpoints.py",),
    ),
    # platforms/services, `_let_go`: that a batch of the backend before is on its way to the disk is
    # not forgotten with it. Scenario: somebody's backend says WorkerLost (its cluster is in
    # maintenance): there is nobody left whom the acknowledgement could reach, another backend is
    # made, and what that one says (WorkerJoined) is never handed out.
    Mutation(
        "a-backend-that-gave-itself-up-is-never-heard-again",
        9,
        "a backend of another package that has lost its worker once never gets another trial",
        "dispatcher/platforms/services/threaded.py",
        "        self._suspect = self._handed_out = False\n",
        "        self._suspect = False\n",
        ("tests/unit/platforms/services/test_threaded.py",),
    ),
    # ssh, `ReverseForwards._take`: connections that are refused are counted among those that are
    # served, and never taken off again. Scenario: agents try a port that their head has taken away,
    # or somebody on that machine scans its ports: after 64 of these no connection of an agent gets
    # through any more, until the whole SSH connection is made anew.
    Mutation(
        "refused-connections-are-counted-for-ever",
        8,
        "after some dozens of refused connections a machine's tunnel lets nobody through",
        "dispatcher/ssh/forwarding.py",
        "            self._served += not refused\n",
        "            self._served += 1\n",
        ("tests/unit/ssh/test_forwarding.py",),
    ),
)

# ---- dispatcher/tuner_host -------------------------------------------------------------------

_TUNER_HOST: tuple[Mutation, ...] = (
    # tuner_host, `Gate._let_go`: where a parent ends and another one is unknown to this process,
    # the head is not asked again. Scenario: the tuner's process was restarted; trial 3 had ended
    # under the one before; a request waits for 3 and 9; 9 ends: the head takes the wait off its
    # books and leaves the waking to the host, which knows nothing of 3: the thread stands for ever,
    # with its slot.
    Mutation(
        "a-parent-from-before-the-restart-is-not-asked-for-again",
        5,
        "after a restart of the tuner a request that waits for an old and a new parent never "
        "wakes, and its slot is gone",
        "dispatcher/tuner_host/gate.py",
        "                else:\n                    self._ask_again(wait)\n",
        "",
        ("tests/unit/tuner_host/test_gate.py",),
    ),
    # tuner_host, `Gate._patience`: a short timeout is kept to the letter, also for parents of which
    # only the head knows that they ended. Scenario: a tuner that polls, wait_for(parent, timeout=0)
    # in a loop with other work: after a restart of its process each poll for a parent that ended
    # before ends with WaitTimeout, before the head's answer can be there.
    Mutation(
        "polls-do-not-wait-for-what-only-the-head-knows",
        5,
        "after a restart a tuner that polls its parents is told for ever that they have not ended",
        "dispatcher/tuner_host/gate.py",
        "        known = self._knows_all(wait.parents) and not (wait.store and wait.parents)\n"
        "        return min(timeout if known else max(timeout, ANSWER_S), threading.TIMEOUT_MAX)\n",
        "        return min(timeout, threading.TIMEOUT_MAX)\n",
        ("tests/unit/tuner_host/test_gate.py",),
    ),
    # tuner_host, `StillDelivery.look`: that the delivery of one trial stood still is held against
    # the next one: nobody is told that this one does, too. Scenario: trial_end of trial 5 stands at
    # a lock for three seconds and returns; that of trial 6 stands there for good: neither 'why' nor
    # the stall says so, the experiment stands still without a word, and a drain waits ten times as
    # long as it should.
    Mutation(
        "the-second-delivery-that-stands-still-is-not-noticed",
        10,
        "a deadlock in trial_end is not named if the delivery before it had stood still for a "
        "while",
        "dispatcher/tuner_host/foreign_waits.py",
        "            self._trial, self._still, self._pause_s = trial, False, DELIVERY_LOOK_S\n",
        "            self._trial, self._pause_s = trial, DELIVERY_LOOK_S\n",
        ("tests/unit/tuner_host/test_foreign_waits.py",),
    ),
)

# ---- trial_runtime: agent, api, weights ------------------------------------------------------

_TRIALS: tuple[Mutation, ...] = (
    # agent, `_close`: what no head has acknowledged is not laid down when the agent leaves.
    # Scenario: the head is away for longer than headGrace; the agent stops its trials, which save
    # and report their results within their grace; these last words come after the last tick: the
    # next head finds nothing of them, calls the attempts lost and runs them again.
    Mutation(
        "an-agent-takes-its-last-words-along",
        4,
        "results and ends of trials that an agent stopped for want of a head are lost",
        "trial_runtime/agent/agent.py",
        "        if self._outbox.first <= self._outbox.newest:\n            self._spool()\n",
        "",
        (
            "tests/unit/trial_runtime",
            "tests/integration/agent/test_head_gone.py",
            "tests/faults/storage/test_spool.py",
        ),
    ),
    # trial runtime, `AgentLink.renew`: what the trial before was told stays: to stop. Scenario:
    # reuseMode inProcess, an assessor stops a trial early, its function sees should_stop() and
    # returns in time; the same worker runs the next trial, in which should_stop() is true from the
    # first step on: it leaves at once, with a result of nothing.
    Mutation(
        "a-stop-of-one-trial-is-heeded-by-the-next",
        9,
        "in a warm worker each trial after one that was stopped early stops at its first step",
        "trial_runtime/link.py",
        "        self.attempt = attempt\n        self.stop_reason = None\n",
        "        self.attempt = attempt\n",
        ("tests/unit/trial_runtime/test_link.py", "tests/integration/agent/test_warm.py"),
    ),
    # weights, `_stage_torch`: tensors that begin at one address and have one shape count as tied,
    # however they step through it. Scenario: a state with a square matrix and its transpose (a tied
    # encoder and decoder): one is stored for both, and comes back untransposed in the child.
    Mutation(
        "a-square-matrix-is-tied-to-its-transpose",
        7,
        "a child gets a matrix of its parent untransposed, without an error",
        "trial_runtime/weights/format/staging.py",
        "        tuple(detached.stride()),\n",
        "",
        ("tests/unit/weights/test_torch.py",),
    ),
    # api, `SharedStore.publish`: where others were quicker a second time, what was merged before is
    # merged again in place of this trial's own state: the difference to the base has the other's
    # change in it then. Scenario: three trials publish gradients with merge="add" at once: the one
    # that is refused twice adds the first one's change twice.
    Mutation(
        "who-is-refused-twice-merges-what-was-merged",
        7,
        "with merge 'add' or 'mean' changes of others count twice when many publish at once",
        "trial_runtime/stores.py",
        "                offer = self._write(self._merged(mine, base, merge), base)\n",
        "                offer = self._write(self._merged(offer, base, merge), base)\n",
        ("tests/unit/trial_runtime", "tests/unit/api", "tests/faults/test_shared_stores.py"),
    ),
)

# ---- tuners ----------------------------------------------------------------------------------

_TUNERS: tuple[Mutation, ...] = (
    # tuners, Hyperband, `receive_trial_result`: a trial that was submitted by hand is ranked among
    # the rung that its number falls into. Scenario: the user submits a point of their own, which is
    # good: its parameters are promoted, with a restore path that no trial has saved to: the request
    # is refused, and again, until the experiment fails by errors of its tuner.
    Mutation(
        "a-trial-by-hand-is-promoted",
        9,
        "a trial that a user submits is promoted by Hyperband from weights that it never saved, "
        "and the search ends with errors of its tuner",
        "tuners/hyperband.py",
        '        if score is None or kwargs.get("customized"):\n',
        "        if score is None:\n",
        ("tests/unit/tuners",),
    ),
)

# ---- dispatcher/experiment, wiring, placement ------------------------------------------------

_WIRING: tuple[Mutation, ...] = (
    # experiment, `SshServiceConfig`: a machine that says itself how many trials it takes follows
    # trialConcurrency all the same where its service says nothing. Scenario: trialConcurrency 16,
    # two machines, of which the small one has "slots: 2": it gets up to sixteen at once.
    Mutation(
        "a-machines-own-slots-are-not-kept-to",
        5,
        "a machine that is to run two trials at once gets as many as the whole experiment",
        "dispatcher/platforms/ssh/section.py",
        "            slots_given=given is not None,\n",
        "            slots_given=self.slots is not None,\n",
        ("tests/unit/wiring", "tests/unit/experiment"),
    ),
)

# ---- dispatcher/cli, queries, control --------------------------------------------------------

_ASKING: tuple[Mutation, ...] = (
    # queries, `_attempts`: of a trial that runs, each attempt without an end counts as running, and
    # not only the newest. Scenario: attempt 1 was lost with its host, attempt 2 runs: 'trial show'
    # tells of two that run, and does not say that the first was lost.
    Mutation(
        "a-lost-attempt-is-shown-as-running",
        10,
        "an attempt that was lost with its host is shown as running beside the one that is",
        "dispatcher/queries/records.py",
        '        running = of.state == "running" and row["attempt"] == of.attempt\n',
        '        running = of.state == "running"\n',
        ("tests/unit/queries/test_trials.py",),
    ),
)

# ---- nfs_setup, code_archive -----------------------------------------------------------------

_MACHINES: tuple[Mutation, ...] = (
    # nfs_setup, `WriteFile.apply`: a file that was there gets our mode, and the owner of files that
    # are new. Scenario: /etc/fstab is 0640 root:adm on a hardened machine: 'nfs client' adds its
    # marked lines and leaves it 0644 root:root, readable for everybody.
    Mutation(
        "a-file-of-somebody-elses-gets-our-mode",
        9,
        "a file that 'nfs client' adds a line to becomes readable for everybody",
        "nfs_setup/step_file.py",
        "            host.write(self.path, new, found.mode, found.uid, found.gid)\n",
        "            host.write(self.path, new, self.mode)\n",
        ("tests/unit/nfs_setup",),
    ),
)

BLIND_AGAIN: tuple[Mutation, ...] = (
    *_CORE,
    *_KEEPING,
    *_REACHING,
    *_TUNER_HOST,
    *_TRIALS,
    *_TUNERS,
    *_WIRING,
    *_ASKING,
    *_MACHINES,
)

#: To be taken in place of one that turns out to be equivalent, or whose code is no more: else
#: left out, so that 20 are counted.
SPARES: tuple[str, ...] = (
    "a-row-that-lags-behind-never-has-the-result",
    "what-is-refused-keeps-its-save-path",
)
