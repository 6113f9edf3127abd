"""Published weights, opened: manifests and tensors, read or mapped; other libraries' files."""
