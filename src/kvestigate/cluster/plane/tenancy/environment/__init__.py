"""Planes as environments: seen whole, copied, put back, compared, and made by the thousand.

    GET    /snapshot            everything at one revision                      snapshots.py
    POST   /fork                copies, independent from then on                forks.py
    GET    /checkpoints         named states to come back to                    checkpoints.py
    POST   /restore             the objects of an earlier state again           checkpoints.py
    GET    /diff                what differs between two states                 differences.py
    GET    /events              every change with its actor: the trajectory     trajectory.py
    POST   /step                let virtual time pass                           steps.py

The paths are relative to a plane and are non-resource URLs of it: its RBAC decides who may ask,
and what they see of it are the resources that they may list.
"""
