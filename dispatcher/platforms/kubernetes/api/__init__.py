"""A client for one API server of Kubernetes, over plain HTTP: who we are, what may be asked, and a
picture of objects that is kept up to date. It knows nothing of trials."""
