"""The network of pods: an address for each, Services and DNS, inside the machine's own network.

A pod whose address is 10.A.B.C listens at 127.A.B.C: Linux answers on all of 127/8, so no
interface, route or privilege is needed. The kernel tells this process of every `bind`,
`connect` and addressed `sendto` of a container (`seccomp`), and it does the call on the
container's own socket with the address that is really meant (`warden`, `sockets`).
"""
