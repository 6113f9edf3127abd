"""Calls the tuner's methods with the signatures that its author wrote.

Tuners written for any NNI since 0.5 run unmodified: arguments go by position, and a method gets
those keywords of later releases that it names, or all if it takes ``**kwargs``. Signatures are
looked at once. No base class is needed, nor its constructor.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from dispatcher.tuner_host.adapter import PLAIN, Advisor, TunerAdapter
from tuners.base import Tuner
from tuners.errors import NoMoreTrialError


def accepted(
    method: Callable[..., Any], positional: int, offered: tuple[str, ...]
) -> frozenset[str]:
    """Select the offered keywords that a method takes beside its positional arguments.

    Args:
        method: a bound method, or any callable.
        positional: number of arguments that go by position.
        offered: keywords that the caller could pass.
    """
    try:
        parameters = list(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):  # written in C, or hides its signature
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return frozenset(offered)
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = {p.name for p in [p for p in parameters if p.kind in by_position][:positional]}
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return frozenset(offered) & (named - taken)


#: Exceptions kept for reports of stalls.
REMEMBERED = 3


class TunerCalls:
    """Calls into one tuner. Each method raises whatever the author's code raises.

    Args:
        tuner: of any shape that has a tuner's methods.
        adapter: for tuners that are written for another framework.
        advisor: the tuner, if it takes intermediate results, too.
    """

    def __init__(
        self, tuner: Any, adapter: TunerAdapter = PLAIN, advisor: Advisor | None = None
    ) -> None:
        self.tuner = tuner
        self.adapter = adapter
        self.advisor = advisor
        #: The last exceptions of the author's code: one may explain a lock that is never released.
        self.raised: deque[str] = deque(maxlen=REMEMBERED)
        self._generate = getattr(tuner, "generate_parameters", None)
        self._generate_many = getattr(tuner, "generate_multiple_parameters", None)
        self._result = getattr(tuner, "receive_trial_result", None)
        self._end = getattr(tuner, "trial_end", None)
        self._space = getattr(tuner, "update_search_space", None)
        self._import = getattr(tuner, "import_data", None)
        self._on_exit = getattr(tuner, "_on_exit", None)
        if adapter.is_inherited(self._generate_many):
            self._generate_many = None  # it only loops; asked one by one, all is clearer
        asked = self._generate_many or self._generate
        #: Whether the tuner can answer a request later, by a callback.
        self.takes_callback = bool(asked and accepted(asked, 1, ("st_callback",)))
        offered = ("customized", "trial_job_id")
        self._result_keywords = accepted(self._result, 3, offered) if self._result else frozenset()

    def missing(self) -> str | None:
        """The method without which this is no tuner, or None."""
        if self._generate is None and self._generate_many is None:
            return "generate_parameters"
        return None if self._result is not None else "receive_trial_result"

    def update_search_space(self, search_space: Any) -> None:
        """Hand over the decoded search space."""
        if self._space is not None:
            self._space(search_space)

    def generate(self, parameter_id: int, callback: Any = None) -> Any:
        """Ask for one trial. A tuner that answers several at once is asked for a list of one.

        Args:
            parameter_id: the request's number.
            callback: by which the tuner may answer later; None: it must answer now.
        """
        keywords = {} if callback is None else {"st_callback": callback}
        if self._generate_many is None:
            assert self._generate is not None
            return self._generate(parameter_id, **keywords)
        answers = list(self._generate_many([parameter_id], **keywords))
        if not answers:
            raise NoMoreTrialError
        if len(answers) > 1:
            raise ValueError(
                f"generate_multiple_parameters([{parameter_id}]) answered {len(answers)} times: "
                "one set of parameters for each id, in the order of the ids"
            )
        return answers[0]

    def result(self, parameter_id: int, parameters: Any, value: Any, *, by_hand: bool) -> None:
        """Hand over a final result. NNI's tuners may decline those of trials added by hand.

        Args:
            parameter_id: the trial, by the request's number.
            parameters: the object that the tuner generated, or an equal one.
            value: decoded JSON.
            by_hand: whether a user added the trial.
        """
        if by_hand and not getattr(self.tuner, "_accept_customized", True):
            return
        assert self._result is not None
        keywords: dict[str, Any] = {}
        if "customized" in self._result_keywords:
            keywords["customized"] = by_hand
        if "trial_job_id" in self._result_keywords:
            keywords["trial_job_id"] = str(parameter_id)
        self._result(parameter_id, parameters, value, **keywords)

    def end(self, parameter_id: int, success: bool) -> None:
        """Hand over the end of a trial; NNI's oldest tuners have no such method."""
        if self._end is not None:
            self._end(parameter_id, success)

    def import_data(self, data: list[dict[str, Any]]) -> str:
        """Hand over results of another experiment; return a note for the user, or nothing.

        It says that the tuner has no use for them, or comes from one of our tuners.
        """
        if self._import is None or self.adapter.is_inherited(self._import):
            return f"{type(self.tuner).__name__} has no import_data: what was imported is ignored"
        remark = self._import(data)
        return remark if isinstance(remark, str) else ""

    def on_exit(self) -> None:
        """Tell the tuner that the experiment is over."""
        if self._on_exit is not None:
            self._on_exit()

    def remember(self, call: str, text: str) -> None:
        """Keep the last line of a traceback."""
        self.raised.append(f"{call} raised {text.rsplit(chr(10), 1)[-1]}")

    # ---- state ---------------------------------------------------------------------------

    @property
    def keeps_state(self) -> bool:
        """Whether the author offers ``state`` and ``restore`` of their own."""
        return self._defines("state") and self._defines("restore")

    @property
    def lacks_restore(self) -> bool:
        """Whether the author offers ``state`` only, which alone is of no use."""
        return self._defines("state") and not self._defines("restore")

    def _defines(self, name: str) -> bool:
        method = getattr(type(self.tuner), name, None)
        return callable(method) and method is not getattr(Tuner, name)

    def state(self) -> Any:
        """The tuner's own state, or None."""
        return self.tuner.state()

    def restore(self, state: Any) -> None:
        """Give a fresh tuner its state back."""
        self.tuner.restore(state)

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Hand a restored tuner a proposal made since its state, if it has a method for that."""
        tell = getattr(self.tuner, "restore_proposal", None)
        if tell is not None:
            tell(parameter_id, parameters)
