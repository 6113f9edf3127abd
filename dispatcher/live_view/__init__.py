"""A running experiment, drawn again and again in a terminal: `bequeath run` and `bequeath top`.

`scene` takes one moment from head and store, `picture` draws it, `watching` follows an experiment
until it ends, by lines where no terminal is.
"""
