"""The sink ``mlflow``: runs at an MLflow server."""

from dispatcher.sinks.mlflow.kind import MlflowKind

MLFLOW = MlflowKind()
"""What the entry point ``mlflow`` names."""
