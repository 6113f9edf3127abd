"""The platform ``azureml``: each worker is a command job of a workspace, with an agent in it."""

from dispatcher.platforms.azureml.platform import AzureMlPlatform

AZUREML = AzureMlPlatform()
"""What the entry point ``azureml`` names."""
