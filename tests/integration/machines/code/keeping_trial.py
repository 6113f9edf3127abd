"""Keeps files, says what it does, and waits for a file before it ends."""

import os
import time

import trial_runtime as bq


def main(parameters=None):
    print("begun", flush=True)
    with open("notes.txt", "w") as file:  # in its working directory
        file.write("what it noted\n")
    os.symlink("/etc/passwd", "way_out")
    bq.save_artefact("model.bin", b"m" * 3_000_000)
    bq.save_artefact("plots/red\x1b[31m.txt", b"a name that a terminal would obey")
    bq.save_checkpoint({"step": __import__("numpy").zeros(1)})
    bq.report_intermediate(0.5)
    go = os.environ["GO"]
    while not os.path.exists(go):
        time.sleep(0.02)
    print("done", flush=True)
    bq.report_final(1.0)


if __name__ == "__main__":
    main()
