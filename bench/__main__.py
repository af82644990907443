"""`python -m bench [NAME...]`: run benches, print tables, optionally keep the figures."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench import (
    attacks,
    audit,
    cluster,
    collect,
    faults,
    fleet,
    jobs,
    listing,
    manifests,
    plane,
    planes,
    startup,
)
from bench.frame import BenchFailed
from bench.settings import Bench, Settings

BENCHES: dict[str, Bench] = {
    "startup": startup.run,
    "list": listing.run,
    "audit": audit.run,
    "faults": faults.run,
    "plane": plane.run,
    "planes": planes.run,
    "fleet": fleet.run,
    "attacks": attacks.run,
    "cluster": cluster.run,
    "collect": collect.run,
    "jobs": jobs.run,
    "from-file": manifests.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(BENCHES)}")
    parser.add_argument("--runs", type=int, default=5, help="of each contender (5)")
    parser.add_argument("--nodes", type=int, default=1_000, help="in the cluster (1000)")
    parser.add_argument("--pods", type=int, default=20_000, help="in the cluster (20000)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHES):
        parser.error(f"no bench called {', '.join(sorted(unknown))}; there are: {list(BENCHES)}")
    settings = Settings(options.runs, options.nodes, options.pods, _progress)
    results = []
    for name in options.names or BENCHES:
        try:
            result = BENCHES[name](settings)
        except BenchFailed as failed:
            print(f"{name}: {failed}", file=sys.stderr)
            return 1
        print(result.render(), end="\n\n", flush=True)
        results.append(result.as_json())
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


def _progress(line: str) -> None:
    print(f"  .. {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
