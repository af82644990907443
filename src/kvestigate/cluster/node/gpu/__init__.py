"""Simulated GPUs: what a node has, who was given which, and what `nvidia-smi` says of them."""
