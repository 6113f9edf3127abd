"""Additions to the Python API for notebooks: trials and tuners out of cells.

`code` and `function_source` write definitions of cells out as files that another process can
import.
"""
