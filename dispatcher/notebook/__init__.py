"""Additions to the Python API for notebooks: trials and tuners out of cells, and pictures.

`code` and `function_source` write definitions of cells out as files that another process can
import; `plotting` draws an experiment into a file that a notebook shows by itself.
"""
