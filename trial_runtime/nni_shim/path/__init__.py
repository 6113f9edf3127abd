"""The folder on a trial's module path; :mod:`nni` is all that lies in it."""
