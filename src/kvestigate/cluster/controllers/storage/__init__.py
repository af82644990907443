"""PersistentVolumes and claims: binding, provisioning, and protection while in use."""
