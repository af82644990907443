"""One file a plugin; `kvestigate.scheduler.registry` lists them. All of them are Pure."""
