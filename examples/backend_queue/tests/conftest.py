"""Where the fixtures of the conformance tests come from."""

pytest_plugins = ["dispatcher.conformance.plugin"]
