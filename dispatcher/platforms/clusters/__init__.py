"""Clusters of Slurm, Ray and Kubernetes in what they have in common: their nodes are other
machines, from which agents have to reach the head, and which see some of our folders or none.

Read :mod:`~dispatcher.platforms.clusters.section` first.
"""
