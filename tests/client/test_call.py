from __future__ import annotations

import json
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.client.call import CONTINUE, Call, Selection, failure, parameters, unserved
from kvestigate.http.message import Request
from kvestigate.kube.resources import Resource
from tests.client.scripted import failure as status

PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("call", "method", "path", "text"),
    [
        (
            Call("get", PODS, "shop", "web"),
            "GET",
            "/api/v1/namespaces/shop/pods/web",
            'get pods "web" in namespace "shop"',
        ),
        (Call("list", PODS), "GET", "/api/v1/pods", "list pods in all namespaces"),
        (Call("delete", NODES, name="n1"), "DELETE", "/api/v1/nodes/n1", 'delete nodes "n1"'),
        (
            Call("patch", WIDGETS, "shop", "w", "status", body=b"{}"),
            "PATCH",
            "/apis/example.com/v1/namespaces/shop/widgets/w/status",
            'patch widgets/status.example.com "w" in namespace "shop"',
        ),
        (
            Call("deletecollection", PODS, "shop"),
            "DELETE",
            "/api/v1/namespaces/shop/pods",
            'deletecollection pods in namespace "shop"',
        ),
    ],
)
def test_a_call_is_a_request_and_a_phrase(call: Call, method: str, path: str, text: str) -> None:
    request = call.request(("limit", "5"))
    assert (request.method, request.path, request.query) == (method, path, "limit=5")
    assert (request.headers.get("content-type") != "") == bool(call.body)
    assert str(call) == text


def test_parameters_that_say_nothing_are_left_out() -> None:
    assert parameters(a=None, b="", c=False, d=True, e=0, f="x") == (
        ("d", "true"),
        ("e", "0"),
        ("f", "x"),
    )


def test_a_selection_is_a_query() -> None:
    selection = Selection("shop", labels="a=b", fields="spec.nodeName=n", extra={"x": "y"})
    assert dict(selection.query()) == {
        "labelSelector": "a=b",
        "fieldSelector": "spec.nodeName=n",
        "x": "y",
    }


LIST = Call("list", PODS, "shop")


@pytest.mark.parametrize(
    ("code", "body", "error", "message"),
    [
        (403, encoded(status(403, "Forbidden", "pods is forbidden")), errors.Forbidden, "^pods is"),
        (403, b"<html>denied", errors.Forbidden, 'cannot list pods in namespace "shop"'),
        (401, b"", errors.Unauthorized, "cannot list pods"),
        (404, b"404 page not found", errors.NotFound, "does not serve pods in v1"),
        (404, encoded(status(404, "NotFound", "gone")), errors.NotFound, "does not serve pods"),
        (503, b"no backend\nmore", errors.ServiceUnavailable, "answered 503 to list .*no backend$"),
        (502, b"<html>", errors.ApiError, "answered 502 to list pods in namespace .shop.$"),
        (409, encoded(status(409, "AlreadyExists")), errors.AlreadyExists, "no"),
        (500, encoded({"kind": "Other"}), errors.InternalError, "answered 500"),
    ],
)
def test_answers_become_errors(
    code: int, body: bytes, error: type[errors.ApiError], message: str
) -> None:
    raised = failure(LIST, code, body)
    assert type(raised) is error
    with pytest.raises(error, match=message):
        raise raised
    assert raised.http_code == code


def test_a_missing_object_differs_from_a_missing_type() -> None:
    body = encoded(status(404, "NotFound", 'pods "web" not found', details={"name": "web"}))
    missing = failure(LIST, 404, body)
    assert isinstance(missing, errors.NotFound)
    assert not unserved(missing)
    unknown = failure(Call("list", WIDGETS), 404, b"404 page not found")
    assert isinstance(unknown, errors.NotFound)
    assert unserved(unknown)
    assert "widgets.example.com in example.com/v1" in unknown.message
    assert unknown.hint


def test_a_plain_request_is_named_by_its_path() -> None:
    raised = failure(Request("GET", "/metrics"), 403, b"")
    assert raised.message == "forbidden: you cannot GET /metrics"


def test_an_expired_list_carries_the_token_to_go_on_with() -> None:
    body = encoded(status(410, "Expired") | {"metadata": {"continue": "newer"}})
    raised = failure(LIST, 410, body)
    assert isinstance(raised, errors.Expired)
    assert raised.details[CONTINUE] == "newer"
