"""The output of ``--json``, command by command, as ``docs/cli.md`` promises it.

A test compares each of them with the command's output.
"""

from __future__ import annotations

#: Keys of a trial, as ``best``, ``trial ls`` and ``trial show`` print it.
TRIAL_KEYS = (
    "id, state, outcome, success, value, result, parameters, parent, save_path, restore_path, "
    "by_hand, attempt, failures, losses, worker, weights_digest, weights_kind, weights_bytes, "
    "gate, gate_chain, end_reason, exit_code, signal, error, tuner_error, since, asked_at, "
    "proposed_at, started_at, ended_at, cpu_s, wall_s, tags, starred"
)

#: Keys of an experiment's summary, as ``status``, ``run`` and ``resume`` print it.
EXPERIMENT_KEYS = (
    "id, name, folder, status, phase_reason, mode, slots, max_trials, pid, host, epoch, "
    "created_at, last_event_at, events, trials, submitted, ended, states, outcomes, best, cpu_s, "
    "wall_s, weights_bytes, rate, time_left_s, tuner, dataset, tags, starred, notes, unsaved"
)

_STARTED = "`{experiment, folder, pid}`."
_CLOSING = (
    f"`{{experiment, best}}` when it is over; `experiment` holds {EXPERIMENT_KEYS}; `best` is a "
    "list of trials, the best first."
)

_GIVEN = (
    "`{experiment, trial, tags, starred, notes}`; `trial` is null of an experiment; a note holds "
    "number, at, text."
)

_CELLS = "`cells` has a list for each trial, of the columns that `--columns` names"

_SETUP = (
    "`{verb, target, dry_run, changed, steps, notes, shown}`; a step holds state (`done`, "
    "`already`, `planned`, `undone`, `kept`), text, detail; a note level (`note`, `warning`, "
    "`do`), text."
)

_PLOT = "experiment, title, cursor, notes"
_RESULTS = f"{_PLOT}, metric, metrics, mode, results, used, parameters"

#: Keys of plots, and what is to be said of them.
_PLOTS = {
    "importance": (
        f"{_RESULTS}, method, seed, fitted, explained, reliable, judged, inherited, alike, rest",
        "; of judged each holds name, importance, error",
    ),
    "slice": (
        f"{_RESULTS}, chosen_by, trials, values, best, slices, rest",
        "; a slice holds axis, at, trend",
    ),
    "contour": (
        f"{_RESULTS}, chosen_by, x, y, trials, values, at_x, at_y, grid_x, grid_y, grid, lines, "
        "best",
        "; a line holds level, x, y",
    ),
    "parallel": (
        f"{_RESULTS}, chosen_by, axes, at, trials, values, best, rest",
        "; an axis holds name, kind, low, high, choices, missing",
    ),
    "pareto": (
        f"{_PLOT}, metrics, objectives, results, on_front, front, trials, points",
        "; the first `front` points are the front",
    ),
    "hypervolume": (
        f"{_PLOT}, metrics, objectives, reference, results, trials, counts, elapsed_s, volumes",
        "; the lists hold an element for each result at which it grew",
    ),
    "timeline": (
        f"{_PLOT}, begin, until, lanes, trials, attempts, lane, starts, ends, outcomes, gpus, "
        "earlier",
        "; a lane holds worker, slot, busy_s",
    ),
    "slots": (
        f"{_PLOT}, begin, until, each_s, busy, slots, busy_share, idle, reasons",
        "; one of idle holds cause, share, and one of reasons begin, end, cause, text",
    ),
}

#: By command; the keys of the outermost object come first.
SHAPES: dict[str, str] = {
    "run": _CLOSING,
    "resume": f"{_CLOSING} With `--background` {_STARTED}",
    "create": _STARTED,
    "stop": "`{experiment, kind, stopped, allocations, troubles}`; `kind` is `drain` or `now`; the "
    "latter two as for `kill`, of one without a head.",
    "kill": "`{experiment, processes, allocations, troubles}`: the ids of the processes that were "
    "ended, the names of what was cancelled at schedulers, and why one could not be asked.",
    "status": f"`{{experiment, head, sinks}}`; `experiment` holds {EXPERIMENT_KEYS}; `head` is the "
    "snapshot of the running head (as `top --json`), or null; a sink holds name, kind, target, "
    "behind, taken, heard_at, error.",
    "sink": "`{experiment, sink, target, taken, behind}`.",
    "tensorboard": "`{folder, experiments, command}`; `command` is empty where TensorBoard is not "
    "installed.",
    "top": "`{experiment, snapshot}`; `snapshot` holds phase, reason, epoch, slots, lookahead, "
    "max_trials, max_duration_s, active_s, submitted, ended, counts, running, waiting, open, "
    "workers, why, troubles, refused, devices; a device holds worker, id, index, name, "
    "memory_bytes, used_bytes, utilization, watts, celsius, trouble, old_s, trials; one of running "
    "has cpu, rss_bytes, devices, gpu_bytes once it was measured.",
    "why": "`{experiment, cause, text}`; `cause` is a value of an enumeration.",
    "best": "`{experiment, mode, objectives, trials, cells}`; `objectives` is empty unless there "
    f"are several; {_CELLS}; a trial holds {TRIAL_KEYS}.",
    "lineage": "`{experiment, mode, nodes, roots, best, best_path}`; a node holds id, parent, "
    "children, generation, state, outcome, value, gain, inherited, pretrained, has_weights, "
    "by_hand, changed, changes (as text).",
    **{
        f"plot {kind}": f"`{{{keys}}}`{more}; see [operations](operations.md#plot-{kind})."
        for kind, (keys, more) in _PLOTS.items()
    },
    "web": "`{link}` once it serves, and for `--link`; `{token}` for `--token`; `{share, token, "
    "link, days, logs}` for `--share`; `{shares}` for `--shares`; each holds share, created_at, "
    "expires_at, logs, over; `{experiment, file, bytes, trials, detailed, logs, left_out, "
    "unmasked}` for `--export`.",
    "trial ls": f"`{{experiment, trials, cells}}`; {_CELLS}; a trial holds {TRIAL_KEYS}.",
    "trial show": "`{experiment, trial, attempts, metrics, children, notes}`; an attempt holds "
    "number, worker, pid, started_at, ended_at, end_reason, exit_code, signal, text, cpu_s, "
    "wall_s; a metric holds attempt, seq, at, final, counted, value, number; a note "
    "number, at, text.",
    "trial kill": "`{experiment, trials, answers}`; `trials` maps numbers to states; an answer "
    "holds trial, state, before, outcome (if it was over).",
    "trial submit": "`{experiment, trial}`.",
    "trial note": _GIVEN,
    "trial tag": _GIVEN,
    "trial star": _GIVEN,
    "experiment note": _GIVEN,
    "experiment tag": _GIVEN,
    "experiment star": _GIVEN,
    "leaderboard": "`{group, boards}`; a board holds group, mode, experiments (each with its "
    "place, and experiment as `experiment list` has it) and names; one of names has name, tuner, "
    "runs, best, median, worst, seeds, cpu_s, wall_s, experiments (ids).",
    "trial tensors": "`{experiment, trial, parent, why, count, bytes, changes, ancestors, groups, "
    "tensors, gone, notes}`; `changes` by `unchanged`, `changed`, `resized`, `new`, `written`; an "
    "ancestor holds trial, generations, tensors, bytes; a group name, tensors, bytes, changes, "
    "origins; a tensor name, group, change, dtype, shape, bytes, origin, generations, stored, "
    "before, was; `gone` are names that only the parent has.",
    "trial files": "`{attempt, place, files, cut}`; a file holds path, kind (`logs`, `artefacts`, "
    "`work`, `checkpoints`), size, changed_at, link; `cut` says that there are more.",
    "trial inputs": "`{experiment, trial, available, why, hint, inputs}`; `inputs` is null where "
    "the trials' code does not declare them; one holds name, kind (`number`, `text`, `image`, "
    "`drawing`), label, default, minimum, maximum, step, width, height.",
    "infer": "`{experiment, trial, answer, took_s, loaded_s, printed}`; `answer` is what the "
    "trial's `infer` returned.",
    "trial fetch": "`{attempt, place, folder, fetched, bytes, same, left, cut}`; `left` maps files "
    "to why they were not fetched.",
    "experiment list": "`{experiments, others}`; each holds id, name, folder, status, created_at, "
    "last_event_at, trials, best_trial, best_value, mode, problem, tuner, dataset, seed, tags, "
    "starred, cpu_s, wall_s; `others` counts those of other "
    "users.",
    "experiment at": "`{experiment, time, began, until, states, outcomes, best, trials, more, "
    "notes}`; a trial holds trial, state (`open`, `queued`, `running`, `ended`), outcome, value, "
    "attempt, worker.",
    "experiment update": "`{experiment, key, running, warning, beyond}`; `warning` is what will be "
    "missed, `beyond` counts the trials above a new limit that were proposed before.",
    "experiment import": "`{experiment, rows}`; `rows` is the number of results that were "
    "delivered.",
    "experiment fetch": "`{experiment, workers}`; a worker holds attempts, error.",
    "experiment delete": "`{experiment, deleted, allocations, troubles}`; the latter two as for "
    "`kill`.",
    "experiment verify": "`{experiment, ok, events, trials, damage, broken_at, differences, "
    "mended}`; `mended` lists what an older bequeath could not have read.",
    "experiment replay": "`{experiment, first, until, newest, trial, kinds, events, state, "
    "refused}`; `first`, `until` and `newest` are rows; `kinds` counts events; an event of the "
    "trial holds row (null: of `--then`), at, kind, fields, counted, moves (from, to, by); `state` "
    "is the trial's record, or phase and trials by state; `refused` is empty if nothing was.",
    "experiment backup": "`{experiment, folder, weights, linked, gone, unseen, links}`.",
    "experiment compact": "`{experiment, compacted, bytes_before, bytes}`.",
    "weights export": "`{experiment, trial, file, tensors, bytes}`.",
    "weights du": "`{experiment, root, trials, total_bytes, removed_bytes, stores, unseen}`; each "
    "trial holds trial, path, own_bytes, inherited_bytes, files, pinned, problem; `stores` maps "
    "names to published, versions, bytes, leftovers.",
    "weights versions": "`{experiment, stores}`; `stores` maps names to published and versions; a "
    "version holds store, number, trial, attempt, nbytes, digest, path, needed.",
    "weights gc": "`{experiment, done, weights, files, bytes, shared, kept, doubtful, stores, "
    "unseen}`; `doubtful` maps trials whose weights are not as they were committed to the reason; "
    "`stores` holds versions, and after a removal leftovers, files, bytes.",
    "weights pin": "`{experiment, trial, pinned}`.",
    "weights unpin": "`{experiment, trial, pinned}`.",
    "nfs server": _SETUP,
    "nfs client": f"{_SETUP} `shown.options` maps each option to its reason.",
    "nfs undo": _SETUP,
    "nfs status": f"{_SETUP} `shown` holds shares (path, file, exported, clients), server "
    "(threads, versions, clients; absent if nothing is exported) and mounts (point, mounted, "
    "waiting, or source and options).",
    "nfs cluster": "`{ok, interrupted, hosts}`; a host holds host, role, state (`done`, `failed`, "
    "`left out`, `unknown`), seconds, report (as the verb's own), error (kind, message, hint, "
    "where); exit code as without `--json`. With `--verify` `{ok, unasked, findings, facts}`: the "
    "clients that could not be asked, and what `nfs verify` prints.",
    "nfs verify": "`{ok, findings, facts}`; a finding holds check, where, level (`passes`, `note`, "
    "`slow`, `wrong`), seen, change; `facts` holds what was measured: machines, rereads, locks.",
    "tuner list": "List of `{kind, name, from, text}`; `from` is `bequeath` or a package.",
    "tuner show": "`{kind, name, class_name, text, paper, spaces, arguments}`; an argument has "
    "name, type, default (JSON text, or `needed`) and text.",
    "tuner check": "`{keeps_contract, faults, remarks, trials, failed, waits, abandoned, "
    "comes_back_by, other_waits}`; a fault has kind, text and details.",
    "tuner replay": "`{experiment, requests, results, ends, from_state, differences, notes}`; a "
    "difference has trial, then and now (JSON texts).",
    "validate": "`{valid, file, experiment}`, or with errors `{valid, file, errors}`, each of "
    "which holds where, message, hint. With `--connect` `findings`, too: service, topic, level, "
    "text, hint.",
    "systemd-unit": "`{name, unit}`: what the file should be called, and its text.",
    "doctor": "`{ok, findings}`; a finding holds topic, level (`ok`, `note`, `problem`), text, "
    "hint.",
    "hosts add": "`{hosts}`; each holds host, name, keys (kind, fingerprint), was_known.",
    "hosts check": "`{ok, hosts}`; a host holds name, host, ok, findings; a finding topic, verdict "
    "(`ok`, `note`, `problem`), text, hint.",
    "hosts list": "`{file, hosts}`; each holds name, kind, fingerprint.",
    "hosts remove": "`{removed}`; machine → how many keys.",
    "hosts tidy": "`{machines}`; each holds machine, left (`ID/WORKER` → `bytes`, `age_s`, `used`, "
    "`told`), stays (`ID/WORKER` → why, empty if it may go), removed.",
}
