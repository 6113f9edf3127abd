"""What bequeath knows of shared storage on this machine.

Today: which mount a folder lies on, and what its options mean for weights that machines
share (:mod:`nfs_setup.mounts`; ``bequeath doctor`` prints it). Only the command line
imports this package.
"""

from nfs_setup.mounts import Advice, Mount, advice_on, mount_of

__all__ = ["Advice", "Mount", "advice_on", "mount_of"]
