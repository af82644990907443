"""Fleets: as many planes as somebody declares, made alike and looked after.

    Fleet                what users write, and what they read back          model.py
    definition()         the CustomResourceDefinition of it                 definition.py
    Seeder               the plane that the members are copies of           seeding.py
    FleetController      brings what is in line with what is wanted         controller.py

What no schema can say about one is in `admission.fleets`.
"""
