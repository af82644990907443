"""Custom resources: kinds that are made of the definitions stored in a plane. Pure."""
