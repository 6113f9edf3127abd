"""A running experiment, drawn again and again in a terminal: `bequeath run` and `bequeath top`.

`scene` takes one moment from head and store, `picture` draws it, `plain` prints lines where no
terminal is, `watching` follows an experiment until it ends.
"""
