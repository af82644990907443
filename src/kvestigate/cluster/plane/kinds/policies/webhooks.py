"""Configurations of admission webhooks. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.policies.compilation import Compiler
from kvestigate.cluster.plane.kinds.policies.expressions import check_conditions
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATION_POLICIES = ("IfNeeded", "Never")
SIDE_EFFECTS = ("None", "NoneOnDryRun")
REVIEW_VERSIONS = ("v1", "v1beta1")
_URL_FORM = "; desired format: https://host[/path]"
_QUALIFIED_MIN = 3


class WebhooksKind(Kind):
    """ValidatingWebhookConfigurations; mutating ones add little."""

    takes_long = True
    has_plain_finalizers = True
    counts_generations = True
    updates_unconditionally = False

    def default(self, obj: Object) -> None:
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", 10)
            for rule in hook.get("rules") or ():
                rule.setdefault("scope", "*")
            if "service" in hook["clientConfig"]:
                hook["clientConfig"]["service"].setdefault("port", 443)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return self._problems(obj)

    def _problems(self, obj: Object) -> Causes:
        seen: set[str] = set()
        for index, hook in enumerate(obj.get("webhooks") or ()):
            path, name = f"webhooks[{index}]", hook.get("name", "")
            yield from _hook(path, hook)
            versions = hook.get("admissionReviewVersions") or []
            yield from _review_versions(f"{path}.admissionReviewVersions", versions)
            if name and name in seen:
                yield causes.duplicate(f"{path}.name", name)
            seen.add(name)


class MutatingWebhooksKind(WebhooksKind):
    def default(self, obj: Object) -> None:
        super().default(obj)
        for hook in obj.get("webhooks") or ():
            hook.setdefault("reinvocationPolicy", "Never")


def _hook(path: str, hook: Object) -> Causes:
    yield from _qualified(f"{path}.name", hook.get("name", ""))
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from validate_rule(f"{path}.rules[{index}]", rule)
    yield from _choice(path, hook, "failurePolicy", FAILURE_POLICIES)
    yield from _choice(path, hook, "matchPolicy", MATCH_POLICIES)
    if "sideEffects" not in hook:
        why = f"must specify one of {', '.join(SIDE_EFFECTS)}"
        yield causes.required(f"{path}.sideEffects", why)
    yield from _choice(path, hook, "sideEffects", SIDE_EFFECTS)
    seconds = hook["timeoutSeconds"]
    if not 1 <= seconds <= 30:
        why = "the timeout value must be between 1 and 30 seconds"
        yield causes.invalid(f"{path}.timeoutSeconds", seconds, why)
    for name in ("namespaceSelector", "objectSelector"):
        yield from checks.label_selector(f"{path}.{name}", hook[name])
    yield from _choice(path, hook, "reinvocationPolicy", REINVOCATION_POLICIES)
    yield from validate_client(f"{path}.clientConfig", hook["clientConfig"])
    yield from check_conditions(Compiler({}), path, hook.get("matchConditions") or ())


def _choice(path: str, hook: Object, name: str, allowed: tuple[str, ...]) -> Causes:
    if name in hook and hook[name] not in allowed:
        yield causes.unsupported(f"{path}.{name}", hook[name], allowed)


def _qualified(path: str, name: str) -> Causes:
    if not name:
        yield causes.required(path)
    elif problems := names.subdomain_problems(name):
        yield from checks.each(path, name, problems)
    elif name.count(".") + 1 < _QUALIFIED_MIN:
        why = "should be a domain with at least three segments separated by dots"
        yield causes.invalid(path, name, why)


def validate_rule(path: str, rule: Object) -> Causes:
    """Which requests are meant: operations on resources of groups at versions."""
    operations = rule.get("operations") or []
    if not operations:
        yield causes.required(f"{path}.operations")
    yield from _alone(f"{path}.operations", operations, "operations")
    for index, operation in enumerate(operations):
        yield from checks.choice(f"{path}.operations[{index}]", operation, OPERATIONS)
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        if not rule.get(name):
            yield causes.required(f"{path}.{name}")
        yield from _alone(f"{path}.{name}", rule.get(name) or [], what)
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield causes.required(f"{path}.apiVersions[{index}]")
    yield from _resources(f"{path}.resources", rule.get("resources") or [])
    if rule.get("scope", "*") not in SCOPES:
        yield causes.unsupported(f"{path}.scope", rule["scope"], SCOPES)


def _alone(path: str, values: list[str], what: str) -> Causes:
    if len(values) > 1 and "*" in values:
        why = f"if '*' is present, must not specify other {what}"
        yield causes.invalid(path, values, why)


def _resources(path: str, resources: list[str]) -> Causes:
    if not resources:
        yield causes.required(path)
    whole: set[str] = set()
    everywhere: set[str] = set()
    for index, each in enumerate(resources):
        resource, slash, part = each.partition("/")
        if not each:
            yield causes.required(f"{path}[{index}]")
        if not slash:
            continue
        if resource in whole:
            why = f"if '{resource}/*' is present, must not specify {each}"
            yield causes.invalid(f"{path}[{index}]", each, why)
        if part in everywhere:
            why = f"if '*/{part}' is present, must not specify {each}"
            yield causes.invalid(f"{path}[{index}]", each, why)
        if part == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(part)
    if len(resources) > 1 and "*/*" in resources:
        why = "if '*/*' is present, must not specify other resources"
        yield causes.invalid(path, resources, why)
    plain = [each for each in resources if each and "/" not in each]
    if "*" in plain and plain[-1] != "*":
        why = "if '*' is present, must not specify other resources without subresources"
        yield causes.invalid(path, resources, why)


def _review_versions(path: str, versions: list[str]) -> Causes:
    if versions:
        yield from validate_review_versions(path, versions)
    else:
        yield causes.required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}")


def validate_review_versions(path: str, versions: list[str]) -> Causes:
    """The versions of reviews that a webhook understands, at least one."""
    accepted = ", ".join(REVIEW_VERSIONS)
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield causes.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            problems = names.label_1035_problems(version)
            yield from checks.each(f"{path}[{index}]", version, problems)
    if not set(versions) & set(REVIEW_VERSIONS):
        yield causes.invalid(path, versions, f"must include at least one of {accepted}")


def validate_client(path: str, config: Object) -> Causes:
    """Where a webhook is: a URL or a Service."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield causes.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(f"{path}.url", url)
    elif service is not None:
        # The server takes the one for the other.
        for named, missing in (("name", "namespace"), ("namespace", "name")):
            if not service.get(missing):
                yield causes.required(f"{path}.service.{named}")
        port = service["port"]
        if not 1 <= port <= 65535:
            why = f"port is not valid: {checks.between(1, 65535)}"
            yield causes.invalid(f"{path}.service.port", port, why)
        yield from validate_service_path(f"{path}.service.path", service.get("path") or "/")


def validate_service_path(path: str, value: str) -> Causes:
    """The URL path of a webhook in its Service."""
    if value == "/":
        return
    if not value.startswith("/"):
        yield causes.invalid(path, value, "must start with a '/'")
    # The server cuts off the first character, whatever it is.
    for index, segment in enumerate(value[1:].removesuffix("/").split("/")):
        if not segment:
            yield causes.invalid(path, value, f"segment[{index}] may not be empty")
            continue
        for problem in names.subdomain_problems(segment):
            yield causes.invalid(path, value, f"segment[{index}]: {problem}")


def _url(path: str, url: str) -> Causes:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises if it is no number
    except ValueError as error:
        yield causes.invalid(path, url, f"url must be a valid URL: {error}{_URL_FORM}")
        return
    if parts.scheme != "https":
        why = f"'https' is the only allowed URL scheme{_URL_FORM}"
        yield causes.invalid(path, parts.scheme, why)
    if not parts.netloc:
        yield causes.invalid(path, parts.netloc, f"host must be specified{_URL_FORM}")
    user, at, _ = parts.netloc.rpartition("@")
    if at:
        yield causes.invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield causes.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield causes.invalid(path, parts.query, "query parameters are not permitted in the URL")
