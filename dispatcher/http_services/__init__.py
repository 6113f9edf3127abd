"""A client for services over HTTP that carry JSON: what it asks, how it proves who asks, when it
asks again, and what an answer means that is an error.

It knows nothing of trials, and no service. The library, urllib3, is an extra, imported when a
service is asked first. Read :mod:`~dispatcher.http_services.client` first.
"""
