"""Faults that whoever strengthens the tests has not seen: 40, and 4 spares (:data:`SPARES`).

Written against commit 753d459, before the tests were changed, by somebody who does not change
them. The comment above each fault says what it means, so that it can be planted again where its
text has moved: re-anchor it by that meaning, and never make it easier or harder to find.
"""

from __future__ import annotations

from tests.mutations.mutation import SIM, Mutation

CORE = "tests/unit/core"

# ---- dispatcher/core -------------------------------------------------------------------------

_CORE: tuple[Mutation, ...] = (
    # core, a new head (`head_started`): the row of failures is not forgotten when a head begins.
    # Scenario: a missing package fails 25 trials in a row; the user mends it and resumes; the
    # first single trial that fails for a reason of its own ends the experiment again (26 >= 25),
    # and phase_reason says "26 trials failed in a row".
    Mutation(
        "a-resumed-experiment-remembers-its-row-of-failures",
        9,
        "an experiment that failed by a row of failures, was mended and resumed fails again at "
        "the first trial that fails",
        "dispatcher/core/transitions/user.py",
        "    state.failures.in_a_row = 0\n",
        "",
        (CORE, SIM),
    ),
    # core, `next_deadline`: the deadline of maxExperimentDuration does not take off what heads
    # before this one have used. `_end_of_time` itself is right, but it is only asked when an event
    # comes, and metrics are none. Scenario: 24 h allowed, 20 h used, resume, trials of ten hours:
    # no Tick falls due after 4 h, so the experiment goes on until a trial happens to end.
    Mutation(
        "a-resumed-experiment-is-not-woken-at-its-longest-duration",
        8,
        "after a resume maxExperimentDuration is noticed hours late: when a trial happens to end",
        "dispatcher/core/machine.py",
        "left = state.settings.max_duration_s - state.active_s",
        "left = state.settings.max_duration_s",
        (f"{CORE}/test_opening.py", f"{CORE}/test_machine.py", SIM),
    ),
    # core, `_may_open_another`: requests that wait are not counted against maxTrialNumber.
    # Scenario: maxTrialNumber 10, 8 submitted, 2 requests blocked in wait_for: two more are
    # opened, and 12 trials run.
    Mutation(
        "requests-that-wait-do-not-count-towards-the-last-trial",
        8,
        "a tuner that waits for parents gets more trials than maxTrialNumber allows",
        "dispatcher/core/asking.py",
        "    return state.submitted + len(state.open) + len(state.blocked) < limit",
        "    return state.submitted + len(state.open) < limit",
        (CORE, SIM),
    ),
    # core, `stalls.watch`: when things move again, the clock that will fail the experiment is not
    # taken back (only that of the quiet is). Scenario: onStall: fail; a suspected stall is named
    # (all requests in an Event of the author's for stallTimeout), one of them moves two seconds
    # later; at the next quiet moment, hours later, the experiment is failed at once. Meanwhile
    # `next_deadline` is in the past: a Tick is journalled at each turn of the engine.
    Mutation(
        "a-stall-that-has-passed-is-held-against-the-experiment",
        10,
        "an experiment that stood still for a while and went on is failed at the next quiet "
        "moment, and its journal grows by a row a turn until then",
        "dispatcher/core/stalls.py",
        "        state.quiet_since = state.fail_at = None\n",
        "        state.quiet_since = None\n",
        (CORE, SIM),
    ),
    # core, `quarantine._failed_elsewhere`: a trial that fails on a second worker is still held
    # against the first one. Scenario: a search space in which a tenth of the trials fails
    # wherever it runs; each of these is tried on two workers; after eight of them (while others go
    # well elsewhere) a healthy host is left out.
    Mutation(
        "who-failed-on-two-workers-counts-against-the-first",
        9,
        "trials that fail wherever they run bring a healthy host into quarantine",
        "dispatcher/core/quarantine.py",
        "            del other.health.failing[trial]\n",
        "",
        (CORE, SIM),
    ),
    # core, `trial_stop_requested`: the wait of a held child is not taken off the books when the
    # child is killed. Scenario: a child is proposed before its parent has ended (HELD); the user
    # stops it; the parent ends well: the killed child is queued, runs, and is delivered again.
    Mutation(
        "a-killed-child-starts-when-its-parent-ends",
        9,
        "a trial that a user has stopped while it was held for its parent runs all the same, and "
        "the tuner is told of two ends",
        "dispatcher/core/transitions/user.py",
        "its next attempt\n        waits.erase(state, trial.id)\n",
        "its next attempt\n",
        (CORE, SIM),
    ),
    # core, `worker_joined`: losses in a row are never forgotten by a join. Scenario: a host that
    # is rebooted once a week is given up after its third reboot; if it is the only one, the
    # experiment fails with "cannot be kept alive".
    Mutation(
        "losses-of-weeks-are-losses-in-a-row",
        9,
        "a host that was rebooted three times within a month is given up for good",
        "dispatcher/core/transitions/worker.py",
        "    worker.losses = 0\n",
        "",
        (f"{CORE}/test_several_workers.py", f"{CORE}/test_machine.py", SIM),
    ),
    # core, `stop_requested`: a second stop with a grace of its own is not passed on to attempts
    # that are being stopped already. Scenario: trialStopGrace 10 min; 'bequeath stop', then
    # 'bequeath kill' (grace 0): the trials go on for ten minutes.
    Mutation(
        "a-kill-after-a-stop-kills-nobody",
        6,
        "'bequeath kill' after 'bequeath stop' waits for the whole grace of the stop",
        "dispatcher/core/transitions/user.py",
        "is not AttemptState.STOPPING or event.grace_s is not None:",
        "is not AttemptState.STOPPING:",
        (f"{CORE}/test_attempts.py", f"{CORE}/test_machine.py", SIM),
    ),
)

# ---- dispatcher/engine, store, past, leading, head -------------------------------------------

_KEEPING: tuple[Mutation, ...] = (
    # engine, `turn`: a base (compaction) is offered whenever a tuner's state was kept, though
    # rows after that state came in the same batch. The base then lies beyond the state, which is
    # passed over from then on (`latest_snapshot` wants one as of the base or later) while the calls
    # before the base are gone: the next tuner process is restored from nothing. Scenario: state()
    # comes with its batch's further words (a Proposed behind it) when 50,000 rows have gathered;
    # kill -9 before the next state.
    Mutation(
        "a-base-is-made-beyond-the-tuners-state",
        2,
        "a tuner that is restored after a compaction has forgotten all results",
        "dispatcher/engine.py",
        "if self._compactor is not None and before + kept == self._row:",
        "if self._compactor is not None:",
        ("tests/unit/engine", SIM),
    ),
    # past, `fold_at_start`: of a tuner without state() all calls are folded again at each fold,
    # and not only those since the base before. Scenario: the second start that folds (100,000
    # rows): a tuner that is rebuilt is told each result of the first fold twice.
    Mutation(
        "what-was-folded-is-folded-again",
        2,
        "a tuner without state() is told its oldest results twice after its journal was folded "
        "for the second time",
        "dispatcher/store/replay/folding.py",
        "    new = past.calls[len(compaction.past_calls()) :]",
        "    new = past.calls",
        ("tests/unit/store", "tests/unit/store", "tests/integration/store"),
    ),
    # store, `statements`: what the core drops from an ended trial's record, the read model keeps;
    # restore_path was forgotten among these. Life and verify agree, since both use this statement.
    # Scenario: 'experiment export' has an empty restore_path for each trial that has ended, so
    # tuners.schedules.schedule() of a finished PBT search returns its last step alone; lineage
    # shows no 'pretrained'.
    Mutation(
        "where-an-ended-trial-came-from-is-forgotten",
        9,
        "exports and lineages do not say any more from which weights a trial started once it "
        "has ended",
        "dispatcher/store/statements.py",
        'for kept in ("restore_path", "final", "told", "number"):',
        'for kept in ("final", "told", "number"):',
        ("tests/unit/store", "tests/unit/queries", "tests/integration/queries"),
    ),
    # head, `_removed_by_hand`: only removals that were completed are announced to the core, and
    # not those that were intended (durably) and interrupted. Scenario: 'weights gc' is killed
    # between its ledger and the files; the next head finishes the removal, but its core does not
    # know: children of these trials are proposed, take slots and fail.
    Mutation(
        "an-interrupted-gc-is-not-told-to-the-next-head",
        7,
        "children of weights that a killed 'weights gc' had given up start and fail, in place of "
        "being refused",
        "dispatcher/head/beginning.py",
        "return {TrialId(removal.trial) for removal in ledger.removals()}",
        "return {\n                TrialId(removal.trial)\n"
        "                for removal in ledger.removals()\n"
        "                if removal.removed_at is not None\n            }",
        ("tests/unit/head/test_beginning.py",),
    ),
    # past, `RestoringTuner.perform`: the past that the head had read for the first launch is used
    # for each later one, too; its calls were cleared by then. Scenario: the tuner's process dies
    # in the middle of a search: its successor takes the newest state and is told nothing since,
    # or, without state(), begins anew.
    Mutation(
        "each-launch-of-a-tuner-uses-the-first-ones-past",
        2,
        "a tuner whose process was restarted knows nothing that came since its last state",
        "dispatcher/store/replay/restoring.py",
        "        past, self._past = self._past, None\n",
        "        past = self._past\n",
        ("tests/unit/store/test_restoring.py", "tests/faults/heads/test_tuner_host_killed.py", SIM),
    ),
    # head, `wind_up`: after an error of the engine the agents are ended with all they run, in
    # place of being left for the next head. Scenario: the disk of the journal is full for a
    # minute: trials that have trained for a day on other machines are killed.
    Mutation(
        "an-error-of-the-head-ends-all-trials",
        4,
        "trials that run elsewhere are killed since the head's own disk was full",
        "dispatcher/head/led_experiment.py",
        "leaving = engine.error is not None or self._stepping_down or not leads",
        "leaving = self._stepping_down or not leads",
        ("tests/unit/head/test_winding_up.py", "tests/faults/heads/test_head_fails.py"),
    ),
)

# ---- dispatcher/channel, backends, ssh -------------------------------------------------------

_REACHING: tuple[Mutation, ...] = (
    # channel, `RouterLink.send`: what is new is sent at once though older messages still wait in
    # the link's backlog: order is lost. Scenario: 10,000 blocked requests are let go, the tuner
    # host's queue is full for a moment, and once there is room again a newer Deliver (or
    # CancelRequest) overtakes older ones; this link has no numbers by which anybody would notice.
    Mutation(
        "new-messages-overtake-those-that-wait",
        2,
        "results and orders reach a busy tuner host in another order than that of the journal",
        "dispatcher/channel/router.py",
        "        if not self._backlog and self._router.send(self.routing_id, payload):",
        "        if self._router.send(self.routing_id, payload):",
        ("tests/unit/channel",),
    ),
    # platforms/agents, `_loss_by_silence`: an agent that has not joined yet gets no more time than
    # the lease. Scenario: leases.lost: 5s; a busy machine takes ten seconds to import: each agent
    # is killed before it has said a word; after three the experiment has failed.
    Mutation(
        "a-short-lease-kills-agents-that-start",
        9,
        "with short leases a busy machine never gets an agent, and is given up",
        "dispatcher/platforms/agents/driver.py",
        "        if silent_s <= (self._lost_s if self._joined else max(self._lost_s, START_S)):",
        "        if silent_s <= self._lost_s:",
        ("tests/unit/platforms", "tests/faults/heads/test_leases.py"),
    ),
    # platforms/local, `expects`: an agent that was given up and has not ended yet is believed when
    # it speaks. Scenario: an agent hangs past its lease (SIGKILL takes a while) and its hello is
    # read before it is dead: it has "joined", what it holds is taken for running, and starts go to
    # a process that is dying.
    Mutation(
        "a-dying-agent-may-join",
        3,
        "trials are started on an agent that was given up and killed; they are lost at once",
        "dispatcher/platforms/local/process.py",
        "if self._dying is not None and self._dying.pid == pid:\n            return False\n",
        "pass\n",
        ("tests/unit/platforms", "tests/faults/heads/test_leases.py"),
    ),
    # ssh, `_open_session`: where a session could not be opened its place in the connection is not
    # given back. Scenario: a machine that is slow for a minute (ten sessions time out as SlowPeer,
    # while the connection stands): from then on each command there waits for a session that never
    # becomes free, and times out.
    Mutation(
        "a-session-that-could-not-be-opened-is-counted-for-ever",
        8,
        "after a slow minute of a machine no command can be run on it over that connection",
        "dispatcher/ssh/connection.py",
        "            except BaseException as error:\n                self._give_back(link)\n",
        "            except BaseException as error:\n",
        ("tests/unit/ssh/test_sessions.py",),
    ),
    # platforms/agents, `SelfReport.offers`: the last offer is not kept up to date; what
    # is compared with is the offer of the joining. Scenario: a stranger computes on a GPU (trouble
    # told), leaves again (the offer is that of the joining: nothing is told): the GPU stays out of
    # use for the rest of the search; and while it lasts each repetition is a row of the journal.
    Mutation(
        "a-gpu-that-is-well-again-is-not-told",
        5,
        "a GPU that was busy for a moment is never used again, and each quarter of a minute of it "
        "is a row of the journal",
        "dispatcher/platforms/agents/self_report.py",
        "        self._offer = offer\n",
        "",
        ("tests/unit/platforms", "tests/integration/gpu"),
    ),
)

# ---- dispatcher/tuner_host -------------------------------------------------------------------

_TUNER_HOST: tuple[Mutation, ...] = (
    # tuner_host, `Gate._enter`: a request that was cancelled while the author's code ran may still
    # begin to wait for trials. Scenario: the user stops an open request ('trial stop') while
    # generate_parameters computes; then it calls wait_for(parent): the head, for whom it has ended,
    # never answers; where the parent ended under the process before this one, the thread and
    # whatever lock the author holds are stuck for good.
    Mutation(
        "a-cancelled-request-may-still-begin-to-wait",
        5,
        "a request that was stopped while it computed waits for ever, with what the author has "
        "locked",
        "dispatcher/tuner_host/gate.py",
        "            if request.cancelled or self._closing:\n"
        '                raise WaitCancelled(self._closing or "this request was cancelled")\n'
        "            known",
        "            if self._closing:\n"
        '                raise WaitCancelled(self._closing or "this request was cancelled")\n'
        "            known",
        ("tests/unit/tuner_host/test_gate.py", "tests/sim/test_tuner_host_schedules.py"),
    ),
    # tuner_host, `Gate._give_up`: a wait that ended by its timeout does not count its request back
    # among those in author's code. Scenario: a tuner with state() and wait_for(timeout=…): a state
    # is taken while generate_parameters changes what state() reads; after a restart the search
    # has half of a change. Foreign waits after a timeout are not seen either: they hold a slot.
    Mutation(
        "who-waited-in-vain-is-not-seen-at-work",
        2,
        "a tuner's state is taken while a request changes it, after a wait of that request had "
        "timed out",
        "dispatcher/tuner_host/gate.py",
        "        self._run_token.go_on(wait.request)\n",
        "",
        ("tests/sim/test_tuner_host_schedules.py",),
    ),
    # tuner_host, `Snapshots.try_take`: where the author's state() gives nothing (None, an error,
    # too much), the pause for it is not ended. Scenario: a tuner whose state() returns None until
    # its model is fitted: at the first state that is due no request can begin any more; the
    # experiment stands still.
    Mutation(
        "a-state-that-could-not-be-taken-leaves-the-pause",
        9,
        "a tuner whose state() raises once is never asked for parameters again",
        "dispatcher/tuner_host/snapshots.py",
        "        if message is None:\n            self.over()\n",
        "",
        ("tests/sim/test_tuner_host_schedules.py",),
    ),
    # tuner_host, `Gate._enter`: a request that stood in a wait of the author's and now waits for
    # trials is still marked as standing in the former. Scenario: generate_parameters waits on an
    # Event, then calls wait_for, then waits on an Event again: the head is not told of the third
    # wait, so the request holds a slot; with one slot nothing that would set the Event ever runs.
    Mutation(
        "a-second-wait-of-the-authors-own-holds-a-slot",
        5,
        "a request that waits on the author's Event before and after wait_for keeps a slot from "
        "the trial it waits for",
        "dispatcher/tuner_host/gate.py",
        "(parent, {})[request.trial] = None\n            request.foreign = False\n",
        "(parent, {})[request.trial] = None\n",
        ("tests/sim/test_tuner_host_schedules.py",),
    ),
)

# ---- trial_runtime: agent and api ------------------------------------------------------------

_TRIALS: tuple[Mutation, ...] = (
    # agent, `TrialMessages.hear`: a process that connects after its attempt was told to stop is not
    # told. Scenario: a trial is stopped while it still imports; it connects, asks should_stop()
    # (false), trains on, and is killed when its grace is over: what it would have saved is lost.
    Mutation(
        "who-connects-late-is-not-told-to-stop",
        6,
        "a trial that was to stop before it had said anything never hears of it, and is killed "
        "in place of saving what it has",
        "trial_runtime/agent/attempts/trial_messages.py",
        "                if attempt.stop_reason is not None:\n"
        "                    self._endpoint.send("
        "connection, [wire.StopAsked(attempt.stop_reason)])\n",
        "",
        ("tests/unit/trial_runtime/test_processes_of_a_trial.py",),
    ),
    # agent, `TrialEndpoint._pay`: a receipt that was held back once is owed for ever: none is
    # planned again. Scenario: a trial that reports faster than maxMessageRate is slowed down once,
    # as it should be; the second time its receipt never comes, and its report waits until it is
    # called gone.
    Mutation(
        "a-trial-is-slowed-down-once-and-then-for-ever",
        8,
        "a trial that reports too fast for a second time hangs for ten minutes and fails",
        "trial_runtime/agent/trials/endpoint.py",
        "        connection.owed = False\n",
        "",
        ("tests/unit/trial_runtime/test_processes_of_a_trial.py", "tests/fuzz/test_door.py"),
    ),
    # trial runtime, `AgentLink._opened`: after a fork the child counts on from its parent's
    # messages, while its own connection is receipted from 0. Scenario: a script that has reported
    # intermediate results forks (multiprocessing) and the child calls report_final: it waits for a
    # receipt that never comes, 600 s, and raises AgentGone.
    Mutation(
        "a-forked-child-waits-for-its-parents-receipts",
        9,
        "report_final in a forked process hangs for ten minutes and fails",
        "trial_runtime/link.py",
        "        self._sent = self._receipted = 0\n",
        "",
        ("tests/unit/trial_runtime/test_processes_of_a_trial.py",),
    ),
    # api, `save_weights`: the weights of a trial that starts from a version of a shared store take
    # that version for their parent. Scenario: restore_path ".stores/omega/3": save_weights is
    # refused, or refers to files of the store, which go when that version is old.
    Mutation(
        "a-trials-weights-inherit-from-a-shared-store",
        7,
        "weights of a trial that started from a shared store cannot be saved, or lose tensors "
        "once the version they came from is removed",
        "trial_runtime/api.py",
        'ours = file.restore_kind == "bequeath" and not file.from_store',
        'ours = file.restore_kind == "bequeath"',
        ("tests/unit/trial_runtime/test_whence.py",),
    ),
    # agent on another machine, `attending._ensure`: what an agent that has died left running is not
    # ended before the next one is started. Scenario: the agent there is killed by SIGKILL (memory);
    # its head starts another one, which runs attempt 2 beside what attempt 1 had started in the
    # background.
    Mutation(
        "a-new-agent-elsewhere-starts-beside-what-the-old-one-ran",
        6,
        "on a machine whose agent was killed trials of before go on beside their next attempts",
        "trial_runtime/agent/attending.py",
        "    if record is not None:\n        _sweep(folder)\n",
        "",
        ("tests/integration/agent/test_attending.py", "tests/integration/machines"),
    ),
)

# ---- trial_runtime/weights, dispatcher/weight_keeper -----------------------------------------

_WEIGHTS: tuple[Mutation, ...] = (
    # weights, `mounted._table`: of mounts stacked on one place the oldest counts, not the newest.
    # Scenario: /data is a local folder over which the share is mounted (or a stale mount below a
    # new one): the weights root counts as a disk of this host: files are mapped (SIGBUS when the
    # server fails), nothing is revalidated, readers give up after a second.
    Mutation(
        "what-a-mount-covers-is-taken-for-it",
        9,
        "a share that is mounted over another mount is taken for a local disk: stale views fail "
        "children, and a server's fault kills trials",
        "trial_runtime/weights/storage/mounted.py",
        "    for line in reversed(lines):",
        "    for line in lines:",
        ("tests/unit/weights",),
    ),
    # weights, `_load_into`: tensors of which only the shared corner is copied (resize="overlap")
    # are not checked against their digests. Scenario: a child is wider than its parent, a bit of
    # the parent's file has flipped on the disk: the child trains on it without a word.
    Mutation(
        "a-corner-is-copied-unseen",
        7,
        "a wider child takes damaged tensors of its parent without an error",
        "trial_runtime/weights/loading/loading.py",
        "    wanted = [*report.loaded, *corners]",
        "    wanted = list(report.loaded)",
        ("tests/faults/storage/test_weights_flips.py",),
    ),
    # weights, `_forget_superseded`: a second save removes each file that the first one referred to
    # and the second does not, whoever's it is. Scenario: a child saves after its first epoch (most
    # tensors still the parent's), then after its last one (none is): the parent's data file goes,
    # and with it the parent's weights and those of all its children.
    Mutation(
        "a-second-save-removes-the-parents-file",
        7,
        "the weights of a parent are destroyed when its child has trained all tensors and saves "
        "for the second time",
        "trial_runtime/weights/saving/saving.py",
        "        if reference not in manifest.files and path in _own_files:",
        "        if reference not in manifest.files:",
        ("tests/unit/weights",),
    ),
    # store, weights ledger, `attempts_over`: the newest attempt of a trial counts as over while it
    # runs. Scenario: a trial writes a version of a shared store (its folder is there, its offer is
    # not answered yet) when the keeper looks: the folder goes for a leftover; the offer is then
    # accepted, and every reader of that version fails.
    Mutation(
        "who-is-publishing-is-taken-for-gone",
        7,
        "a version of a shared store is removed while its trial publishes it: it is accepted, and "
        "nobody can read it",
        "dispatcher/store/weights_ledger.py",
        "is None or now > attempt)",
        "is None or now >= attempt)",
        (
            "tests/unit/store/test_weights_ledger.py",
            "tests/unit/weight_keeper",
            "tests/faults/test_shared_stores.py",
        ),
    ),
    # weight keeper, `sweep`: what is removed is what was asked for, and not what was granted.
    # Scenario: of two trials that the policy lets go one is refused by the core, since a child of
    # it was proposed meanwhile: its files go all the same, and no ledger says so; the child fails.
    Mutation(
        "what-was-refused-is-removed-with-the-rest",
        7,
        "of several weights that could go the one that a new child needs goes, too",
        "dispatcher/weight_keeper/keeper.py",
        "                self._delete(going.removal, [one.path for one in plan.doomed])",
        "                going = self._going(decision.dropped, trials)\n"
        "                self._delete(going.removal, [one.path for one in plan.doomed])",
        ("tests/unit/weight_keeper", "tests/unit/maintenance"),
    ),
)

# ---- tuners ----------------------------------------------------------------------------------

_TUNERS: tuple[Mutation, ...] = (
    # tuners, median stop, `trial_end`: trials that failed or were stopped are among those that
    # others are compared with. Scenario: the rule stops half of the trials early; their low
    # averages pull the median down, so that it stops ever fewer of the weak ones.
    Mutation(
        "the-stopped-are-compared-with",
        9,
        "median stop becomes laxer with each trial that it stops",
        "tuners/assessors/medianstop.py",
        "        if success and all(map(math.isfinite, scores)):",
        "        if all(map(math.isfinite, scores)):",
        ("tests/unit/tuners",),
    ),
    # tuners, ASHA, `state`: a promotion that is under way (its request waits for the parent's end)
    # is written down neither among those that wait nor among the promoted. Scenario: a head is
    # killed after such a state: the best configuration of the rung is never promoted.
    Mutation(
        "a-promotion-under-way-is-lost-with-the-process",
        2,
        "after a restart ASHA has forgotten the configuration that it was about to promote",
        "tuners/asha.py",
        "                configurations = {**rung.configurations, **open_}",
        "                configurations = dict(rung.configurations)",
        ("tests/unit/tuners",),
    ),
    # tuners, PBT, `_note`: a member that has taken over from another one still counts as that one
    # after its own result has come (off by one at the bound). Scenario: member 3 takes over from
    # member 7 and gets much better (or worse) than it: others go on choosing by 7's score, and copy
    # 7's weights in place of 3's, for a generation.
    Mutation(
        "who-took-over-is-not-judged-by-its-own-result",
        9,
        "a population does not see the result of a member that has just copied another one",
        "tuners/pbt.py",
        "self._moved[member][0] <= generation.parameter_id:",
        "self._moved[member][0] < generation.parameter_id:",
        ("tests/unit/tuners",),
    ),
)

# ---- dispatcher/experiment, wiring, placement ------------------------------------------------

_WIRING: tuple[Mutation, ...] = (
    # core/placement, `takes`: a worker on probation gets as many attempts as it has slots, in place
    # of one as a probe. Scenario: a host of 16 slots whose scratch disk is full comes out of its
    # quarantine: it fails sixteen trials at once, and again after each pause.
    Mutation(
        "a-probation-is-for-all-slots-at-once",
        9,
        "a broken host fails as many trials as it has slots at the end of each quarantine",
        "dispatcher/core/placement.py",
        "        and not (health.on_probation and health.probe is not None)\n",
        "",
        (CORE, SIM),
    ),
    # wiring, `secrets_of_services`: what a jump host's section refers to is not among what is
    # kept out of logs. Scenario: a trial or a library prints its environment, or an error quotes
    # the password: head.log and the journal have it in clear.
    Mutation(
        "a-jump-hosts-password-is-not-masked",
        9,
        "the password of a jump host stands in logs",
        "dispatcher/wiring/places.py",
        "references_in(service.model_dump())",
        'references_in(service.model_dump(exclude={"machine_list": {"__all__": {"jump"}}}))',
        ("tests/unit/wiring", "tests/unit/head", "tests/integration/security"),
    ),
    # experiment, `offered`: what a machine says itself counts only if it is true, or above 0.
    # Scenario: the service says useActiveGpu: true, one machine's owner says false (or cost: 0):
    # trials are put beside the owner's processes there.
    Mutation(
        "a-machines-no-is-not-heard",
        9,
        "a machine that is not to share its GPUs with others' processes gets trials beside them, "
        "since its service says yes for all",
        "dispatcher/experiment/needs.py",
        "        values[attribute] = usual if own is None or own == {} else own\n",
        "        values[attribute] = own or usual\n",
        ("tests/unit/experiment", "tests/unit/wiring"),
    ),
)

# ---- dispatcher/cli, queries, finding, control -----------------------------------------------

_ASKING: tuple[Mutation, ...] = (
    # control, `RunFile.remove`: a head that winds up takes away whatever run file is there, its
    # successor's as well. Scenario: 'resume --take-over': the new head has written its run.json
    # when the old one, which steps down, removes it: status, stop, update say "is not running" for
    # as long as the new head lives.
    Mutation(
        "a-head-that-leaves-hides-its-successor",
        3,
        "after a take-over the head that leads cannot be asked, stopped or changed",
        "dispatcher/control/client.py",
        "        if published is not None and published.token == self.token:",
        "        if published is not None:",
        ("tests/unit/control", "tests/faults/heads/test_take_over.py"),
    ),
    # queries, `status_of`: what a head wrote down at its end counts though a later head led and was
    # killed. Scenario: completed; maxTrialNumber raised; resumed; kill -9: the status is
    # "completed", and 'bequeath resume' says that there is nothing to resume.
    Mutation(
        "the-word-of-an-earlier-head-is-the-status",
        10,
        "an experiment whose head was killed is shown as stopped or completed, as the head before "
        "had left it, and is not found by 'bequeath resume'",
        "dispatcher/folders/status.py",
        'in ("completed", "stopped", "failed") and (last is None or str(last) == epoch):',
        'in ("completed", "stopped", "failed"):',
        ("tests/unit/queries", "tests/integration/queries"),
    ),
    # finding, `_guessed`: where none runs and several are kept, one that is to be changed is
    # guessed (the newest), in place of asking which. Scenario: 'bequeath experiment update
    # maxTrialNumber 500' without a name changes whichever was created last.
    Mutation(
        "what-is-to-be-changed-is-guessed",
        9,
        "a command that changes an experiment takes the newest one when nobody has said which",
        "dispatcher/experiments/find.py",
        "    if purpose is Purpose.CHANGE and len(kept) > 1:",
        "    if purpose is Purpose.CHANGE and len(running) > 1:",
        ("tests/unit/cli", "tests/unit/queries", "tests/integration/cli"),
    ),
)

# ---- nfs_setup, code_archive -----------------------------------------------------------------

_MACHINES: tuple[Mutation, ...] = (
    # nfs_setup, `_carried_out`: a change is written into the ledger after it was made, and not
    # before. Scenario: the machine loses power (or the process is killed) within a step: the export
    # or mount is there, and neither the next run nor 'nfs undo' knows of it.
    Mutation(
        "a-change-is-noted-after-it-was-made",
        4,
        "what a killed set-up has changed on a machine is never taken back",
        "nfs_setup/transaction.py",
        "        run.entries.append(entry)\n        ledger.save()\n",
        "        run.entries.append(entry)\n",
        ("tests/unit/nfs_setup", "tests/system/nfs"),
    ),
    # code archive, `_add`: a file that has grown since it was listed is packed up to its former
    # size without a word. Scenario: an editor or a generator writes a module while an experiment
    # starts: machines are given the first part of it.
    Mutation(
        "a-file-that-grows-is-packed-in-part",
        7,
        "machines get the first part of a file that was written to while the code was packed",
        "dispatcher/code_archive/packing.py",
        "        if os.fstat(file.fileno()).st_size != entry.size:",
        "        if os.fstat(file.fileno()).st_size < entry.size:",
        ("tests/unit/code_archive",),
    ),
)

BLIND: tuple[Mutation, ...] = (
    *_CORE,
    *_KEEPING,
    *_REACHING,
    *_TUNER_HOST,
    *_TRIALS,
    *_WEIGHTS,
    *_TUNERS,
    *_WIRING,
    *_ASKING,
    *_MACHINES,
)

#: To be taken in place of one that turns out to be equivalent, or whose code is no more: else
#: left out, so that 40 are counted.
SPARES: tuple[str, ...] = (
    "an-interrupted-gc-is-not-told-to-the-next-head",
    "new-messages-overtake-those-that-wait",
    "what-a-mount-covers-is-taken-for-it",
    "a-kill-after-a-stop-kills-nobody",
)
