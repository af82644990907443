"""No two nodes of a machine have the same addresses."""

from __future__ import annotations

from pathlib import Path

from kvestigate.cluster.node.net.addresses import claim


def test_nodes_of_all_clusters_have_different_addresses(tmp_path: Path) -> None:
    claims = [claim("node-1", tmp_path / f"{number}") for number in range(8)]
    try:
        assert len({one.prefix for one in claims}) == 8
    finally:
        for one in claims:
            one.close()


def test_a_node_keeps_its_addresses_if_they_are_free(tmp_path: Path) -> None:
    kept = tmp_path / "addresses"
    first = claim("node-1", kept)
    other = claim("node-1", kept)  # while the first holds them
    assert other.prefix != first.prefix
    other.close()
    first.close()
    again = claim("node-2", kept)
    assert again.prefix == other.prefix
    again.close()
