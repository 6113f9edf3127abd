"""The platform ``vertex``: each worker is a CustomJob of Vertex AI, with an agent in it."""

from dispatcher.platforms.vertex.platform import VertexPlatform

VERTEX = VertexPlatform()
"""What the entry point ``vertex`` names."""
