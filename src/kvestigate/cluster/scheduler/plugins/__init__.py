"""One file a plugin; `kvestigate.cluster.scheduler.registry` lists them. All of them are Pure."""
