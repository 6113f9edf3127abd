"""The platform ``kubeflow``: each worker is a PyTorchJob or a TFJob of a cluster."""

from dispatcher.platforms.kubeflow.platform import KubeflowPlatform

KUBEFLOW = KubeflowPlatform()
"""What the entry point ``kubeflow`` names."""
