"""Shares of this host for attempts: devices, limits, samples of use, memory that ran out."""
