"""Where lines go. `interface` says what a sink is; each file beside it is one."""
