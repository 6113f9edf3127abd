"""A name of 0.1.0, for processes of it that go on while this is installed; goes with 0.3."""

from trial_runtime.nni_shim.any_metric import report_any as report_any
