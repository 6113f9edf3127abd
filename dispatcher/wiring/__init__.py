"""Translates the experiment file into the configuration of each process and each place.

The file is read by `experiment` alone. Here what it says becomes the settings of the core
(`settings`), of the tuner host (`tuner_host`), of agents (`agents`, `places`, `needs`) and of all
that meets weights (`weights`, `remote_roots`, `storage_domains`), by plain translations: nothing is
decided, and but for `remote_roots` and `storage_domains`, which try out what the file names,
nothing outside is looked at. A new key of the file is passed on in one of these modules.
"""
