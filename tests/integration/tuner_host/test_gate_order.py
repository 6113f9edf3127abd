"""No child is let go while the author is still being told of its parent's end."""

from __future__ import annotations

import json

import pytest

from dispatcher.core import events as e
from tests.integration.tuner_host.conftest import Make
from tests.integration.tuner_host.test_requests import source


@pytest.mark.parametrize("method", ["receive_trial_result", "trial_end"])
def test_a_child_waits_until_each_call_has_returned(make: Make, method: str) -> None:
    """The call looks for a child that came through; one that does is told of by itself."""
    head = make(
        source(f"""
        import threading
        class T(Tuner):
            def __init__(self): self.through, self.early = threading.Event(), None
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id:
                    self.wait_for(0)
                    self.through.set()
                return {{"early": self.early}}
            def receive_trial_result(self, *args, **kwargs): pass
            def trial_end(self, *args, **kwargs): pass
        def look(self, *args, **kwargs): self.early = self.through.wait(0.3)
        T.{method} = look
        """)
    ).start()
    head.open(0, 1)
    head.wait_for(e.WaitStarted, 1)
    head.deliver(0, {"default": 0.5})
    child = json.loads(head.wait_for(e.Proposed, 1).parameters)
    assert child == {"early": False}
