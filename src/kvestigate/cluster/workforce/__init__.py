"""The workers of planes: the controllers, the scheduler and the simulated nodes of each plane.

Thousands of planes share a process, so the workers of a plane are started when there is work and
stopped when there is none; on a plane with a virtual clock they work only while it is stepped.
"""
