"""Rules about writes that look beyond the object: pure over the plane's state."""
