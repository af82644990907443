"""Kinds of storage: volumes, claims, their classes and CSI drivers."""
