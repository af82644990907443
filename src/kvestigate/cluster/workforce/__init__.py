"""Crews: the controllers, the scheduler and the simulated nodes that work on one plane.

Thousands of planes share a process, so a crew is made when there is work and let go when there
is none; and on a plane with a virtual clock it works only while the plane is stepped.
"""
