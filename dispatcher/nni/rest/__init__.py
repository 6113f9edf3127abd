"""NNI's REST for one experiment of ours, on a port of its own: a process that reads and asks.

`bequeath nni serve` opens it, and so do `bequeath nni create --port` and `bequeath web --nni-port`.
It stands on the table of operations and on the queries, as the page does, and uses the page's
connections, follower of heads and answers (`dispatcher.web`). `guard` says who may come in without
a token, `jobs` holds the trials in NNI's layout, `reading` and `changing` are the routes, `portal`
shows NNI's own page where that is installed.
"""
