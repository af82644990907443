"""What a pod's spec asks for, without doing any of it: environment, command, QoS class. Pure."""
