"""Google's tuning jobs: AI Platform Training (`ml.v1`) and Vertex AI. Their programs run here."""
