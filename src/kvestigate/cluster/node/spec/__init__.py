"""What a pod's spec asks for, without doing any of it: its environment and its command. Pure."""
