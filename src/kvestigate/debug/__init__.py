"""Diagnosing the connection to a cluster and its speed."""
