"""Files, scripts, commands and tuners written for NNI. Nothing else needs this room.

`dialect` is what reading a file, copying code and running a script ask, by the entry point
`bequeath.dialects`; `tuner/adapter` is what the tuner host asks.

`files` translates experiment files, `annotated` reads annotated trial code, `commands` are those of
`nnictl`, `script` runs scripts that use `nni.experiment`, `tuner` serves tuners and advisors of
NNI's in the tuner host. What a trial needs is in `trial_runtime/nni_shim` and
`trial_runtime/agent/nni.py`.
"""
