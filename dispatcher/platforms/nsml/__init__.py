"""The platform ``nsml``: each worker is a run of a project of CLOVA NSML, with an agent in it."""

from dispatcher.platforms.nsml.platform import NsmlPlatform

NSML = NsmlPlatform()
"""What the entry point ``nsml`` names."""
