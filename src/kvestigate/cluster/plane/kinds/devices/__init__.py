"""Kinds of dynamic resource allocation: claims of devices, and the slices that offer them."""
