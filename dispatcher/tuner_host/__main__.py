"""``python -m dispatcher.tuner_host CONFIGFILE``, as the head's driver starts it."""

import sys

from dispatcher.tuner_host.main import main

if __name__ == "__main__":  # multiprocessing of the author's imports this once more
    main(sys.argv)
