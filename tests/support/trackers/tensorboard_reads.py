"""What TensorBoard itself reads in a folder, as JSON: run by the Python of its own environment."""

import json
import sys

from google.protobuf import json_format
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import (
    api_pb2,
    backend_context,
    get_experiment,
    list_session_groups,
)


def main(folder):
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(folder)
    multiplexer.Reload()
    scalars = {}
    for run in sorted(multiplexer.Runs()):
        tags = multiplexer.GetAccumulator(run).Tags()["tensors"]
        scalars[run] = {
            tag: [[e.step, e.wall_time, numbers(e)] for e in multiplexer.Tensors(run, tag)]
            for tag in tags
            if not tag.startswith("_hparams_")
        }
    provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
    context = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    request = RequestContext()
    found = get_experiment.Handler(
        request, context, "", api_pb2.GetExperimentRequest(experiment_name="")
    ).run()
    wanted = api_pb2.ListSessionGroupsRequest(
        start_index=0,
        slice_size=100000,
        allowed_statuses=list(api_pb2.Status.values()),
        col_params=[
            api_pb2.ColParams(
                metric={"tag": "final"}, order=api_pb2.ORDER_DESC, missing_values_first=False
            )
        ],
    )
    groups = list_session_groups.Handler(request, context, "", wanted).run()
    print(
        json.dumps(
            {
                "scalars": scalars,
                "experiment": json_format.MessageToDict(found),
                "groups": json_format.MessageToDict(groups),
            }
        )
    )


def numbers(event):
    from tensorboard.util import tensor_util

    return float(tensor_util.make_ndarray(event.tensor_proto).item())


main(sys.argv[1])
