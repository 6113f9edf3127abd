"""The backend ``ssh``: an agent on each of several machines, and a tunnel from it to the head."""

from dispatcher.backends.ssh.archive import Archives, pack_all
from dispatcher.backends.ssh.machine import Machine
from dispatcher.backends.ssh.translation import experiment_folder
from dispatcher.backends.ssh.visit import SshVisit

__all__ = ["Archives", "Machine", "SshVisit", "experiment_folder", "pack_all"]
