"""The GPUs of a host, as its agent sees them: found, watched, judged, offered and handed over.

:mod:`.nvml` asks the driver, in a thread of its own; :mod:`.judging` says which devices may
take something new; :mod:`.watching` does both again and again; :mod:`.handing` tells a trial
its share. Devices are named as the vendor names them, never by index.
"""
