"""What runs when the spec leaves it to an image that is not here."""

from __future__ import annotations

import pytest

from kvestigate.cluster.node.spec.images import EntrypointUnknown, ImageMissing, argv, check_exists


@pytest.mark.parametrize(
    ("image", "command", "args", "expected"),
    [
        ("nginx", ["nginx"], ["-g", "x"], ("nginx", "-g", "x")),
        ("registry.k8s.io/pause:3.10", [], [], ("sleep", "2147483647")),
        ("busybox", [], [], ("sh",)),
        ("docker.io/library/busybox:1.36", [], ["echo", "hi"], ("echo", "hi")),
        ("python:3.12-slim@sha256:0", [], ["python3", "-V"], ("python3", "-V")),
    ],
)
def test_what_a_container_runs(
    image: str, command: list[str], args: list[str], expected: tuple[str, ...]
) -> None:
    assert argv(image, command, args) == expected


@pytest.mark.parametrize("args", [[], ["--verbose"]])
def test_an_unknown_entrypoint_is_refused_by_name(args: list[str]) -> None:
    with pytest.raises(EntrypointUnknown, match=r'"nginx:1".*set command'):
        argv("nginx:1", [], args)


@pytest.mark.parametrize(
    ("image", "exists"), [("nginx:lates", False), ("nginx:latest", True), ("ngnix", False)]
)
def test_some_images_nobody_ever_pushed(image: str, exists: bool) -> None:
    missing = ("nginx:lates", "ngn*")
    if exists:
        check_exists(image, missing)
    else:
        with pytest.raises(ImageMissing, match=f"{image}: not found"):
            check_exists(image, missing)
