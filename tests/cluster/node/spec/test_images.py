"""What runs when the spec leaves it to an image that is not here."""

from __future__ import annotations

import pytest

from kvestigate.cluster.node.spec.images import (
    EntrypointUnknown,
    ImageMissing,
    InvalidImageName,
    argv,
    check_exists,
    check_name,
)


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


@pytest.mark.parametrize(
    "image",
    [
        "nginx",
        "nginx:1.27",
        "library/nginx",
        "registry.k8s.io/pause:3.10",
        "localhost:5000/a/b-c__d.e:v1",
        "[::1]:5000/x",
        "Registry.Example.com/x:V1_a.b",
        f"nginx@sha256:{'a' * 64}",
        f"nginx:1@sha256:{'a' * 64}",
    ],
)
def test_names_that_a_registry_could_have(image: str) -> None:
    check_name(image)


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ("", "invalid reference format"),
        ("nginx:", "invalid reference format"),
        ("nginx:a b", "invalid reference format"),
        (":latest", "invalid reference format"),
        ("https://nginx", "invalid reference format"),
        ("nginx::1", "invalid reference format"),
        ("a//b", "invalid reference format"),
        ("nginx@sha256:abc", "invalid reference format"),
        (
            "Nginx:1",
            "invalid reference format: repository name (library/Nginx) must be lowercase",
        ),
        (
            "quay.io/Org/App",
            "invalid reference format: repository name (Org/App) must be lowercase",
        ),
        (
            "a" * 64,
            f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings",
        ),
        ("a" * 256, "repository name must not be more than 255 characters"),
    ],
)
def test_names_that_no_registry_can_have(image: str, problem: str) -> None:
    with pytest.raises(InvalidImageName) as refused:
        check_name(image)
    assert str(refused.value) == (
        f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": '
        f"{problem}"
    )
