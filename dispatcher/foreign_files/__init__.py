"""Experiment files of services: Katib, AI Platform Training and Vertex AI. Nothing else needs this.

Each folder has a dialect, found by the entry point `bequeath.dialects`; a `table` with each field
and what becomes of it, from which `page` makes docs/from-others.md; and what translates the fields.
`translation` walks over a file by its table. `commands` writes a container's command for bash,
`spaces` makes search spaces.
"""
