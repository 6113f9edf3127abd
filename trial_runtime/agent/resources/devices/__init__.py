"""The GPUs of a host, as its agent sees them: found, watched, judged, offered and allocated.

:mod:`.nvml` asks the driver, in a thread of its own; :mod:`.judging` decides which devices new
trials may use; :mod:`.watching` does both again and again; :mod:`.variables` names a trial's
devices to it. Devices have the vendor's names, never an index.
"""
