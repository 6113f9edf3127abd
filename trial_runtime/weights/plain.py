"""A name of 0.1.0, for processes of it that go on while this is installed; goes with 0.3."""

from trial_runtime.weights.read.plain import FilesDigest as FilesDigest
from trial_runtime.weights.read.plain import PublishedDigest as PublishedDigest
from trial_runtime.weights.read.plain import await_published as await_published
from trial_runtime.weights.read.plain import digest_tree as digest_tree
from trial_runtime.weights.read.plain import published_digest as published_digest
from trial_runtime.weights.read.plain import saved_again as saved_again
from trial_runtime.weights.read.plain import verify_tree as verify_tree
