"""Does a share keep what weights on it need? Measured and judged, by any user.

Three layers that know nothing of one another's insides:

- *Probes* (:mod:`~nfs_setup.verify.probes`) do real input and output in a folder of their own
  below the share and answer plain facts. They run on each machine, one request at a time, and
  keep nothing in memory between two.
- *Judgements* (``judge_*``) are pure functions from facts to findings: it passes, it is slow,
  it is wrong, and one sentence what to change.
- The *survey* (:mod:`~nfs_setup.verify.survey`) asks one or several machines, over whatever
  carries a request and an answer (:class:`~nfs_setup.verify.peer.Peer`), in an order that
  leaves caches no excuse.

No privileges are needed, and nothing is left behind.
"""

from nfs_setup.verify.asked import Place
from nfs_setup.verify.finding import Finding, Level
from nfs_setup.verify.judge import judged
from nfs_setup.verify.local_peer import LocalPeer
from nfs_setup.verify.peer import Peer, PeerHangs, PeerLost
from nfs_setup.verify.plan import Plan
from nfs_setup.verify.survey import survey
from nfs_setup.verify.surveyed import Survey

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
