"""The base class of advisors."""

from __future__ import annotations

from typing import Any

from ..recoverable import Recoverable  # noqa: TID252 - this file is nni.runtime… to its users
from . import protocol


class MsgDispatcherBase(Recoverable):
    """Handles the commands of NNI's manager; the tuner host plays the manager's part.

    All handlers are called from one thread, one after another. :func:`send` may be called from
    any, also later.
    """

    def __init__(self, command_channel_url: Any = None) -> None:
        """Subclasses need not call it; there is no channel of its own."""
        self.stopping = False

    def run(self) -> None:
        """Do nothing: messages come by :meth:`process_command`."""

    def process_command(self, command: Any, data: Any) -> None:
        """Handle one message."""
        commands = protocol.CommandType
        handlers = {
            commands.Initialize: self.handle_initialize,
            commands.RequestTrialJobs: self.handle_request_trial_jobs,
            commands.UpdateSearchSpace: self.handle_update_search_space,
            commands.ImportData: self.handle_import_data,
            commands.AddCustomizedTrialJob: self.handle_add_customized_trial,
            commands.ReportMetricData: self.handle_report_metric_data,
            commands.TrialEnd: self.handle_trial_end,
            commands.Ping: self.handle_ping,
        }
        handlers[command](data)

    def handle_ping(self, data: Any) -> None:
        """Answer NNI's manager that the process is there; nothing calls it here."""

    def send(self, command: Any, data: Any) -> None:
        """Send a command to the manager."""
        protocol.send(command, data)

    def handle_initialize(self, data: Any) -> None:
        """Take the search space."""
        raise NotImplementedError("handle_initialize not implemented")

    def handle_request_trial_jobs(self, data: int) -> None:
        """Send as many trials, now or later."""
        raise NotImplementedError("handle_request_trial_jobs not implemented")

    def handle_update_search_space(self, data: Any) -> None:
        """Take a changed search space."""
        raise NotImplementedError("handle_update_search_space not implemented")

    def handle_import_data(self, data: Any) -> None:
        """Take results of another experiment."""
        raise NotImplementedError("handle_import_data not implemented")

    def handle_add_customized_trial(self, data: Any) -> None:
        """Take a trial that a user added."""
        raise NotImplementedError("handle_add_customized_trial not implemented")

    def handle_report_metric_data(self, data: Any) -> None:
        """Take a metric."""
        raise NotImplementedError("handle_report_metric_data not implemented")

    def handle_trial_end(self, data: Any) -> None:
        """Take the end of a trial."""
        raise NotImplementedError("handle_trial_end not implemented")
