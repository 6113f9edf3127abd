"""The platform ``ssh``: trials on other machines, which are reached by SSH."""

from dispatcher.platforms.ssh.platform import SshPlatform

SSH = SshPlatform()
"""What the entry points ``ssh`` and ``remote`` name; the second is NNI's word."""
