"""The platform ``aiplatform``: a worker is a job of AI Platform Training, with an agent in it."""

from dispatcher.platforms.aiplatform.platform import AiTrainingPlatform

AI_PLATFORM = AiTrainingPlatform()
"""What the entry point ``aiplatform`` names."""
