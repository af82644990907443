"""Stands in for PyTorch where there is none: only its ranks are real."""
