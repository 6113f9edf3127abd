"""Platforms whose allocations are jobs of a service over HTTP, in what they have in common.

A service lends places by jobs: a container with a command, which waits in a queue, runs, and is
gone. It is asked by requests, sees none of this machine's folders but those that are mounted there
under another path, and shows a job's environment to others. Read
:mod:`~dispatcher.platforms.http_jobs.jobs` first: it is all that a service has to fill in. A
platform is then a section (:mod:`~dispatcher.platforms.http_jobs.section`), a service, and a class
that joins them (:mod:`~dispatcher.platforms.http_jobs.platform`).
"""
