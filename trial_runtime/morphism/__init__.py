"""Network morphisms: a larger network that computes, at birth, what its parent computes.

Each function takes a parent's weights by name (numpy arrays or torch tensors, such as what
``load_weights`` or ``state_dict`` returns) and returns those of the child: a new dict in which the
tensors that did not change are the very same objects. Nothing is changed in place. Which morphism
is worth trying is a tuner's business (``tuners.morphing``); how the network is built, the author's.

- ``wider``: more units in a layer, copies that share their outgoing weights (Net2Wider)
- ``deeper``: one more layer, the identity (Net2Deeper), with a batch norm that undoes itself
- ``larger_kernel``: a kernel with a rim of zeros
- ``hear``: a skip by concatenation, whose channels have weights of zero yet
- ``mix``: a skip by addition, whose share is zero yet
- ``chain``: all of these for a network that is a chain of blocks, from typed steps

Chen, Goodfellow, Shlens: Net2Net, ICLR 2016, arXiv:1511.05641. Wei, Wang, Rui, Chen: Network
Morphism, ICML 2016, arXiv:1603.01670. Elsken, Metzen, Hutter: Simple and Efficient Architecture
Search for CNNs, 2018, arXiv:1711.04528.

They belong here and not to the tuners, as the weights are where the trial is. Not covered:
transposed and grouped convolutions (a depthwise one may be passed ``through``), and layer norms
over the channels that grow, whose statistics copies would change. The optimiser's state of a
tensor whose shape changed does not fit any more: start it anew.

Importing this loads neither numpy nor torch.
"""

from __future__ import annotations

from trial_runtime.morphism.deepening import deeper
from trial_runtime.morphism.kernels import larger_kernel
from trial_runtime.morphism.skips import hear, mix
from trial_runtime.morphism.widening import wider

__all__ = ["deeper", "hear", "larger_kernel", "mix", "wider"]
