"""Experiments of Katib, `kubeflow.org/v1beta1`: their programs run here, without a cluster."""
