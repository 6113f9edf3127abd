"""Process 1 of a node: ``unshare … python slurm_node.py NAME HOSTS [HIDDEN]``.

Names it, gives it a ``/proc`` and hosts of its own, hides a folder, says so, and takes in what its
processes leave.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys


def main() -> None:
    """Set up, and wait for ever."""
    name, hosts, *hidden = sys.argv[1:]
    socket.sethostname(name)
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
    # What a login of this machine's user does may take locks, and a node dies at any moment.
    for path in map(os.path.expanduser, ("~/.bashrc", "~/.profile", "~/.bash_profile")):
        if os.path.isfile(path):
            subprocess.run(["mount", "--bind", os.devnull, path], check=True)
    for folder in hidden:
        subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    os.write(1, b"!")
    os.close(1)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        signal.sigwait({signal.SIGCHLD})
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    main()
