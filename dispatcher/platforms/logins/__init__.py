"""Logins to other machines as an experiment file describes them: the keys, what is wrong with them,
and the way from them to :mod:`dispatcher.ssh`. For any platform that logs in somewhere."""
