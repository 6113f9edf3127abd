"""The platform ``kubernetes``: each worker is a Job of a cluster, with an agent in it."""

from dispatcher.platforms.kubernetes.platform import KubernetesPlatform

KUBERNETES = KubernetesPlatform()
"""What the entry point ``kubernetes`` names."""
