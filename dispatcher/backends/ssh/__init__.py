"""The backend ``ssh``: an agent on each of several machines, and a tunnel from it to the head."""

from dispatcher.backends.ssh.archive import Archive, pack
from dispatcher.backends.ssh.machine import Machine
from dispatcher.backends.ssh.process import SshProcess

__all__ = ["Archive", "Machine", "SshProcess", "pack"]
