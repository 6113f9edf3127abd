"""The folder of an experiment: its paths, its owner, and its state as files alone show it.

`names` has the names that several rooms share, `experiment_folder` the paths, `ownership` judges
whose folder it is, `status` sees whether a head leads, `small_file` reads files of bounded size.
Nothing here opens the store.
"""
