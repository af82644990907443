"""`deploy` and `delete`: manifests become objects, in an order that works, and objects go."""
