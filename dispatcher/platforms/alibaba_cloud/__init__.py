"""Platforms of Alibaba Cloud in what they have in common: who asks, and how a request is signed.
Read :mod:`~dispatcher.platforms.alibaba_cloud.jobs` first."""
