# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of a Kubernetes API server that kubectl asks for cordon, drain and uncordon.

It keeps nodes and pods in memory. Paths, objects and errors are those of the Kubernetes API
reference; authorization is a bearer token, and a set of forbidden requests.
"""

from __future__ import annotations

import copy
import json
import re
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.ready_hooks.web_server import Answer, Request, WebServer

Json = dict[str, Any]

TOKEN = "token-of-the-hook"
# verbs of the resources that kubectl finds by discovery
_CORE = (
    ("nodes", False, "Node", ["get", "list", "patch"]),
    ("pods", True, "Pod", ["get", "list", "delete"]),
    ("pods/eviction", True, "Eviction", ["create"]),
)
_APPS = (("daemonsets", True, "DaemonSet", ["get", "list"]),)
_VERBS = {"GET": "get", "PATCH": "patch", "POST": "create"}
_NODE = re.compile(r"/api/v1/nodes/([^/]+)")
_POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/eviction)?")
_DAEMON_SET = re.compile(r"/apis/apps/v1/namespaces/([^/]+)/daemonsets/([^/]+)")


class KubernetesApi:
    """Nodes and pods; ``server`` gets the requests, and its context is open as long as the API is used."""

    def __init__(self, server: WebServer) -> None:
        self.server = server
        self.nodes: dict[str, Json] = {}
        self.pods: dict[tuple[str, str], Json] = {}
        # names of pods that a PodDisruptionBudget protects
        self.protected: set[str] = set()
        # whether the others end after their eviction
        self.ends_pods = True
        # such as ("create", "pods/eviction"); None: all requests are allowed
        self.allowed: set[tuple[str, str]] | None = None
        self.forbidden: set[tuple[str, str]] = set()
        server.otherwise = self.answer

    def add_node(self, name: str, boot_id: str = "", **spec: Any) -> Json:
        """Add a node that is ready, and return it."""
        conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        metadata = {"name": name, "uid": str(uuid.uuid4())}
        status = {"conditions": conditions, "nodeInfo": {"bootID": boot_id}}
        self.nodes[name] = {"kind": "Node", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status}
        return self.nodes[name]

    def add_pod(self, name: str, node: str, owner: str | None = "ReplicaSet", **spec: Any) -> None:
        """Add a running pod; `owner` is the kind of its controller, or None."""
        metadata: Json = {"name": name, "namespace": "default", "uid": str(uuid.uuid4())}
        if owner is not None:
            reference = {"apiVersion": "apps/v1", "kind": owner, "name": f"{name}-owner", "uid": "1"}
            metadata["ownerReferences"] = [{**reference, "controller": True}]
        self.pods["default", name] = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": metadata,
            "spec": {"nodeName": node, "containers": [], **spec},
            "status": {"phase": "Running"},
        }

    def is_cordoned(self, name: str) -> bool:
        """Return whether the node is unschedulable."""
        return self.nodes[name]["spec"].get("unschedulable") is True

    def pod_names(self) -> list[str]:
        return sorted(name for _namespace, name in self.pods)

    def answer(self, request: Request) -> Answer:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _failure(401, "Unauthorized", "Unauthorized")
        parts = urlsplit(request.target)
        return (
            _discovery(parts.path)
            or self._access_review(parts.path, request)
            or self._nodes(parts.path, request)
            or self._pods(parts.path, parse_qs(parts.query), request)
            or _failure(404, "NotFound", f"the server could not find {parts.path}")
        )

    def _access_review(self, path: str, request: Request) -> Answer | None:
        if path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
            return None
        asked = request.json["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        allowed = not self._is_forbidden(asked["verb"], resource)
        return _json(201, {**request.json, "status": {"allowed": allowed}})

    def _is_forbidden(self, verb: str, resource: str) -> bool:
        asked = (verb, resource)
        return asked in self.forbidden or (self.allowed is not None and asked not in self.allowed)

    def _nodes(self, path: str, request: Request) -> Answer | None:
        match = _NODE.fullmatch(path)
        if match is None:
            return None
        if self._is_forbidden(_VERBS[request.method], "nodes"):
            return _forbidden("nodes", match[1])
        if match[1] not in self.nodes:
            return _failure(404, "NotFound", f'nodes "{match[1]}" not found')
        if request.method == "PATCH":
            self.nodes[match[1]] = _merged(self.nodes[match[1]], request.json)
        return _json(200, self.nodes[match[1]])

    def _pods(self, path: str, query: dict[str, list[str]], request: Request) -> Answer | None:
        if path == "/api/v1/pods":
            if self._is_forbidden("list", "pods"):
                return _forbidden("pods", "")
            node = query["fieldSelector"][0].removeprefix("spec.nodeName=")
            items = [pod for pod in self.pods.values() if pod["spec"]["nodeName"] == node]
            return _json(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
        if match := _DAEMON_SET.fullmatch(path):
            if self._is_forbidden("get", "daemonsets"):
                return _forbidden("daemonsets", match[2])
            metadata = {"name": match[2], "namespace": match[1]}
            return _json(200, {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": metadata})
        match = _POD.fullmatch(path)
        if match is None:
            return None
        if not match[3] and self._is_forbidden("get", "pods"):
            return _forbidden("pods", match[2])
        key = (match[1], match[2])
        if key not in self.pods:
            return _failure(404, "NotFound", f'pods "{match[2]}" not found')
        return self._evict(key) if match[3] else _json(200, self.pods[key])

    def _evict(self, key: tuple[str, str]) -> Answer:
        if self._is_forbidden("create", "pods/eviction"):
            return _forbidden("pods/eviction", key[1])
        if key[1] in self.protected:
            text = "Cannot evict pod as it would violate the pod's disruption budget."
            return _failure(429, "TooManyRequests", text, causes=[{"reason": "DisruptionBudget", "message": text}])
        if self.ends_pods:
            del self.pods[key]
        else:
            self.pods[key]["metadata"]["deletionTimestamp"] = "2026-11-21T12:54:00Z"
        return _json(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})


def kubeconfig(server: WebServer, authority: str, token: str = TOKEN) -> str:
    """Return the kubeconfig for the server; `authority` is the path of its certificate on the host."""
    cluster = {"server": server.url, "certificate-authority": authority}
    context = {"cluster": "cluster", "user": "drain"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": "drain", "user": {"token": token}}],
            "contexts": [{"name": "drain@cluster", "context": context}],
            "current-context": "drain@cluster",
        }
    )


def _discovery(path: str) -> Answer | None:
    if path == "/api":
        return _json(200, {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
    if path == "/apis":
        groups = [_group("apps", "v1"), _group("authorization.k8s.io", "v1"), _group("policy", "v1beta1")]
        return _json(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    resources = {
        "/api/v1": ("v1", _CORE),
        "/apis/apps/v1": ("apps/v1", _APPS),
        "/apis/authorization.k8s.io/v1": ("authorization.k8s.io/v1", ()),
        "/apis/policy/v1beta1": ("policy/v1beta1", ()),
    }
    if path not in resources:
        return None
    version, listed = resources[path]
    items = [
        {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": verbs}
        | ({"group": "policy", "version": "v1beta1"} if kind == "Eviction" else {})
        for name, namespaced, kind, verbs in listed
    ]
    return _json(200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": items})


def _group(name: str, version: str) -> Json:
    entry = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [entry], "preferredVersion": entry}


def _merged(target: Json, patch: Json) -> Json:
    """Return the result of a JSON merge patch, which for these members is that of a strategic one, too."""
    found = copy.deepcopy(target)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict):
            found[name] = _merged(found.get(name) or {}, value)
        else:
            found[name] = value
    return found


def _json(status: int, content: Json) -> Answer:
    return Answer(status, json.dumps(content).encode(), {"Content-Type": "application/json"})


def _forbidden(resource: str, name: str) -> Answer:
    return _failure(403, "Forbidden", f'{resource} "{name}" is forbidden: User "drain" cannot do this')


def _failure(status: int, reason: str, message: str, **details: Any) -> Answer:
    content = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": status}
    return _json(status, {**content, "reason": reason, "message": message, "details": details})
