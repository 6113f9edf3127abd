"""The backend ``ssh``: an agent on each of several machines, and a tunnel from it to the head."""

from dispatcher.backends.ssh.archive import Archives, pack_all
from dispatcher.backends.ssh.machine import Machine
from dispatcher.backends.ssh.process import SshProcess

__all__ = ["Archives", "Machine", "SshProcess", "pack_all"]
