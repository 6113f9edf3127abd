"""The page and the REST interface: a process of its own that reads stores and asks heads.

It is started by `bequeath web`, and nothing else imports it. `settings` says where it listens,
`keys` and `guard` who may come in, `routes` what there is (the table of operations, and what only
a page needs), `live` follows experiments for all browsers at once.
"""
