"""Kinds with which users judge writes: admission policies in CEL, and webhooks."""
