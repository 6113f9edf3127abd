"""Files, scripts, commands and tuners written for NNI.

`files` translates experiment files, `annotated` reads annotated trial code, `commands` are those of
`nnictl`, `script` runs scripts that use `nni.experiment`, `tuner` serves tuners and advisors of
NNI's in the tuner host. What a trial needs is in `trial_runtime/nni_shim` and
`trial_runtime/agent/nni`.
"""
