"""Subresources other than `status`: scale, binding, eviction, token, finalize, ..."""
