"""What wandb's own messages say is in its files, as JSON: run by the Python of its environment.

The frame is that of a LevelDB log; its records are read by the package's protobuf classes.
"""

import json
import pathlib
import struct
import sys

from wandb.proto import wandb_internal_pb2 as pb

BLOCK = 32768


def records(path):
    data = path.read_bytes()
    assert data[:4] == b":W&B", data[:8]
    at, parts = 7, []
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        parts.append(data[at + 7 : at + 7 + length])
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = pb.Record()
            record.ParseFromString(b"".join(parts))
            parts = []
            yield record


def items(message):
    return {(i.key or "/".join(i.nested_key)): json.loads(i.value_json) for i in message}


def run_of(path):
    found = {"history": [], "summary": {}}
    for record in records(path):
        which = record.WhichOneof("record_type")
        if which == "run":
            run = record.run
            found |= {"id": run.run_id, "group": run.run_group, "name": run.display_name}
            found |= {"project": run.project, "tags": list(run.tags), "notes": run.notes}
            found["config"] = items(run.config.update)
        elif which == "history":
            found["history"].append(items(record.history.item))
        elif which == "summary":
            found["summary"] |= items(record.summary.update)
        elif which == "exit":
            found["exit"] = record.exit.exit_code
    return found


files = sorted(pathlib.Path(sys.argv[1]).rglob("*.wandb"))
print(json.dumps([run_of(path) for path in files]))
