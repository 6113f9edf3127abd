"""Does a share keep what weights on it need? Measured and judged, by any user.

Each thing that is looked at has a module (``place``, ``habits``, ``pace``, ``views``, ``churn``,
``locks``) with up to three parts that know nothing of one another's insides:

- *Probes* do real input and output in a folder of their own below the share and answer plain
  facts (:mod:`~nfs_setup.verify.facts`). They run on each machine, one request at a time, and keep
  nothing in memory between two. :mod:`~nfs_setup.verify.probes` takes the requests.
- ``ask_*`` asks the machines, over whatever carries a request and an answer
  (:class:`~nfs_setup.verify.peers.Peer`).
- *Judgements* (``judge_*``) are pure functions from facts to findings: it passes, it is slow,
  it is wrong, and one sentence what to change. ``owners`` and ``room`` only judge.

The *survey* (:mod:`~nfs_setup.verify.survey`) puts all of it in an order that leaves caches no
excuse.

No privileges are needed, and nothing is left behind.
"""

from nfs_setup.verify.facts import Survey
from nfs_setup.verify.findings import Finding, Level
from nfs_setup.verify.peers import LocalPeer, Peer, PeerHangs, PeerLost, Place
from nfs_setup.verify.survey import Plan, judged, survey

__all__ = [
    "Finding",
    "Level",
    "LocalPeer",
    "Peer",
    "PeerHangs",
    "PeerLost",
    "Place",
    "Plan",
    "Survey",
    "judged",
    "survey",
]
