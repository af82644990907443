"""Kinds of who may do what, and how much: RBAC, certificate requests, flow control."""
