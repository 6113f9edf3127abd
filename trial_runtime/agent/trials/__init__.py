"""Connections of trials: the socket they come to, their admission, their messages checked."""
