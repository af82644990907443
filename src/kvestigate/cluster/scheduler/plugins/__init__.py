"""The scorers of the scheduler, which `scheduler.registry` lists. All are Pure."""
