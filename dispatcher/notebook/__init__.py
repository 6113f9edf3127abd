"""What a notebook adds to the Python API: trials and tuners out of its cells, and pictures.

`code` and `function_source` write what cells define out as files that another process can import;
`plotting` draws an experiment into a file that a notebook shows by itself.
"""
