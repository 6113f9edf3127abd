"""From the experiment file to what each process and each place is told.

The file is read once, by `experiment`; no other room knows it. What is said to the core
(`settings`), the tuner host (`tuner_host`), agents (`agents`, `machines`, `resources`, `needs`)
and whoever meets weights (`weights`, `remote_roots`, `storage_domains`) is put together here, by
plain translations: nothing is decided, and but for `remote_roots` and `storage_domains`, which
try out what they were told, nothing outside is looked at. A new key of the file is handed on in
one of these modules.
"""
