"""Speed and memory beside the peers, as ratios: `python -m bench [NAME...]`.

Every figure is the median of interleaved runs, each in a process of its own, on one machine.
Absolute values are that machine's; only the ratios are claims.
"""
