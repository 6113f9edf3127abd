"""The faults that are planted, by the promise they break, named before the tests that find them.

A missed one is a missing test: write it, or sharpen the checker, and leave the entry. The texts
are those of the files as they are; ``tests/arch/test_mutations.py`` fails when one is not there
any more, so that the list cannot rot.
"""

from __future__ import annotations

from tests.mutations.advising import ADVISING
from tests.mutations.agents import AGENTS
from tests.mutations.asking import ASKING
from tests.mutations.balancing import BALANCING
from tests.mutations.blind import BLIND
from tests.mutations.blind_again import BLIND_AGAIN
from tests.mutations.deciding import DECIDING
from tests.mutations.devices import DEVICES
from tests.mutations.ending import ENDING
from tests.mutations.entering import ENTERING
from tests.mutations.feeding import FEEDING
from tests.mutations.files import FILES
from tests.mutations.following import FOLLOWING
from tests.mutations.hiding import HIDING
from tests.mutations.mutation import Mutation
from tests.mutations.nni_words import NNI_WORDS
from tests.mutations.owners import OWNERS
from tests.mutations.places import PLACES
from tests.mutations.platforms import PLATFORMS
from tests.mutations.reaching import REACHING
from tests.mutations.services import SERVICES
from tests.mutations.shared_stores import SHARED_STORES
from tests.mutations.shares import SHARES
from tests.mutations.telling import TELLING
from tests.mutations.tuning import TUNING
from tests.mutations.unseen import UNSEEN
from tests.mutations.weights import WEIGHTS
from tests.mutations.wheels import WHEELS

ALL: tuple[Mutation, ...] = (
    *DECIDING,
    *BALANCING,
    *ENDING,
    *AGENTS,
    *WEIGHTS,
    *SHARES,
    *REACHING,
    *PLACES,  # who goes where
    *FILES,  # what trials leave
    *DEVICES,  # what hosts lend
    *PLATFORMS,  # backends of others
    *SERVICES,  # jobs of services over HTTP
    *WHEELS,  # what is brought to machines
    *TUNING,  # what proposes and judges
    *SHARED_STORES,  # weights that many train at once
    *NNI_WORDS,
    *ADVISING,
    *ENTERING,  # who comes in over the page
    *HIDING,  # secrets, strangers' folders, full disks
    *TELLING,
    *UNSEEN,
    *BLIND_AGAIN,  # likewise, after the nets were changed
    *BLIND,  # planted before the nets were changed, by somebody who changed none
    *OWNERS,  # whose an experiment is, and who may look
    *FOLLOWING,  # what changed since somebody looked
    *FEEDING,  # what trackers are given
    *ASKING,  # what can be asked, and what is shown
)
