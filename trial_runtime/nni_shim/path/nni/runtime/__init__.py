"""Names that NNI v2 and v3 keep below ``nni.runtime``."""
