"""Faults to plant in shares set up on many machines, and what is said of them."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

SHARES: tuple[Mutation, ...] = (
    Mutation(
        "torn-reads-of-a-share-pass",
        7,
        "a share on which half a file shows under its name is called good",
        "nfs_setup/verify/probe_churn.py",
        '        if said.decode("ascii") == digest(body):',
        '        if said.decode("ascii"):',
        ("tests/unit/nfs_setup/verify/test_probes.py",),
    ),
    Mutation(
        "a-clean-up-of-a-share-takes-what-is-not-its-own",
        9,
        "measuring a share removes somebody's folder with a name like ours",
        "nfs_setup/verify/files.py",
        "    return _OURS.fullmatch(name) is not None",
        "    return name.startswith(PREFIX)",
        ("tests/unit/nfs_setup/verify/test_probes.py",),
    ),
    Mutation(
        "who-is-killed-leaves-a-big-file-on-the-share",
        8,
        "each verify that is stopped half way takes a bit more of the share",
        "nfs_setup/verify/__main__.py",
        "    signal.pthread_kill(main_thread, signal.SIGINT)",
        "    assert main_thread",
        ("tests/unit/nfs_setup/verify/test_survey.py",),
    ),
    Mutation(
        "clients-are-begun-without-their-server",
        9,
        "a server that cannot be set up leaves clients with a mount that hangs",
        "nfs_setup/cluster/conduct.py",
        "            if well and not self.interrupted:",
        "            if not self.interrupted:",
        ("tests/unit/nfs_setup/cluster/test_conduct.py",),
    ),
    Mutation(
        "a-cluster-is-taken-back-from-its-server",
        7,
        "clients lose the share under programs that still write to it",
        "nfs_setup/cluster/plan.py",
        "    return clients, Wave(server, ",
        "    return Wave(server), Wave(clients.orders, ",
        ("tests/unit/nfs_setup/cluster/test_conduct.py",),
    ),
    Mutation(
        "code-that-came-in-half-is-run-by-root",
        9,
        "a connection that breaks makes a host do something else than was asked",
        "nfs_setup/cluster/luggage.py",
        "if hashlib.sha256(code).hexdigest() != digest:",
        "if hashlib.sha256(code).hexdigest() == 0:",
        ("tests/unit/nfs_setup/cluster/test_luggage.py",),
    ),
    Mutation(
        "ctrl-c-begins-with-further-hosts",
        9,
        "whoever stops a cluster's set-up in time does not stop it",
        "nfs_setup/cluster/crew.py",
        "        while not self.interrupted:",
        "        while True:",
        ("tests/unit/nfs_setup/cluster/test_conduct.py",),
    ),
    Mutation(
        "two-names-of-one-machine-are-two",
        9,
        "the server mounts its own export by another name, and hangs when it is busy",
        "nfs_setup/cluster/conduct.py",
        "            if other is outcome:",
        "            if True:",
        ("tests/unit/nfs_setup/cluster/test_conduct.py",),
    ),
)
