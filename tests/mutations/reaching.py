"""Faults to plant in how machines are reached, and what is packed for them."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

REACHING: tuple[Mutation, ...] = (
    Mutation(
        "whoever-answers-is-logged-in-to",
        9,
        "a machine in between gets user name, key and code",
        "dispatcher/ssh/login.py",
        "        check_key(hop, shown_key(transport))\n",
        "",
        ("tests/integration/ssh/test_logins.py",),
    ),
    Mutation(
        "a-silent-machine-is-waited-for",
        8,
        "a cut link holds a driver for ever",
        "dispatcher/ssh/watched_socket.py",
        "if self.silence_s() > self._silent_s:",
        "if self.silence_s() < 0:",
        ("tests/integration/ssh/test_losing_it.py",),
    ),
    Mutation(
        "a-command-past-its-limit-goes-on",
        6,
        "processes are left on a machine",
        "dispatcher/ssh/connection.py",
        "ended = error.pid > 0 and self._kill(error.pid)",
        "ended = error.pid > 0",
        ("tests/integration/ssh/test_commands.py",),
    ),
    Mutation(
        "damaged-code-is-run",
        7,
        "trials run code that arrived in part",
        "dispatcher/remote_python/on_host/unpack.py",
        "if reading.hexdigest() != digest:",
        "if reading.hexdigest() == 0:",
        ("tests/integration/ssh/test_files.py",),
    ),
    Mutation(
        "a-link-takes-foreign-files-along",
        9,
        "files from outside the code folder reach other machines",
        "dispatcher/code_archive/listing.py",
        'if real != str(root) and not real.startswith(f"{root}/"):',
        "if not real:",
        ("tests/unit/code_archive/test_packing.py",),
    ),
    Mutation(
        "history-is-sent",
        9,
        "what was taken out of the code on purpose reaches other machines",
        "dispatcher/code_archive/ignoring.py",
        'if path.rpartition("/")[2] in HISTORY:',
        'if path in ("", *HISTORY) and not path:',
        ("tests/unit/code_archive/test_ignoring.py",),
    ),
    Mutation(
        "a-virtual-environment-is-sent",
        9,
        "a link out of the code, in a folder called env, keeps all machines from being had",
        "dispatcher/code_archive/listing.py",
        "            if is_folder and is_environment(item.path):",
        "            if is_folder and not item.path:",
        ("tests/unit/code_archive/test_ignoring.py",),
    ),
    Mutation(
        "what-is-left-out-counts-against-limits",
        9,
        "data that goes nowhere keeps an experiment from starting",
        "dispatcher/experiment/code_folder.py",
        "                if entry.path in left_out or rules.leaves_out(name, is_folder=is_folder):",
        '                if entry.path in left_out or entry.name == ".git":',
        ("tests/unit/experiment/test_disk_checks.py",),
    ),
)
