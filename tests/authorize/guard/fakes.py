"""An authority and a recorder that behave, or misbehave, as a test says. In-process, or as a script for other uids.

`python fakes.py LOG authority=PATH recorder=PATH …` serves these sockets for everybody and appends each request as a
line to LOG.
"""

import asyncio
import json
import sys
from pathlib import Path

from onrecord.authorize.digest import action_digest, input_digest
from onrecord.base.ids import uuid7
from onrecord.base.rpc_server import RpcServer
from onrecord.base.wire import RpcError, error_line, result_line


class FakeAuthority:
    """Issues proofs for every tool whose name does not begin with "deny"; checks them as the real one does."""

    def __init__(self):
        self.requests = []
        self.proofs = {}
        self.tools = []
        self.count = 0
        self.silent = set()
        self.answers = {}
        self.approved = False
        self.connections = []

    def on_connect(self, connection):
        self.connections.append(connection)
        return True

    def on_disconnect(self, connection):
        self.connections.remove(connection)

    def on_broken(self, connection, answer):
        return answer

    def on_request(self, connection, request):
        self.requests.append((request.method, request.params))
        if request.method in self.silent:
            return None
        if self.answers.get(request.method):
            given = self.answers[request.method].pop(0)
            return given if isinstance(given, bytes) else result_line(request.id, given)
        return getattr(self, "_" + request.method.split("/")[1])(request)

    def asked(self, method):
        return [params for name, params in self.requests if name == "callProof/" + method]

    def _hello(self, request):
        result = {
            "version": "1",
            "evidenceTypes": ["dev.onrecord/handle"],
            "features": ["inputDigest", "peerUid"],
            "status": "ok",
        }
        return result_line(request.id, result)

    def _tools(self, request):
        self.tools = request.params["tools"]
        return result_line(request.id, {"received": len(self.tools)})

    def _issue(self, request):
        params = request.params
        if params["name"].startswith("deny"):
            data = {"reason": "denied", "ref": "q7Zt0cXn4LmA", "operationId": uuid7()}
            raise RpcError(-33001, "Denied by policy", data)
        self.count += 1
        value = f"PROOF-CANARY-{self.count:08d}"
        digest = action_digest("tools/call", params["name"], params.get("arguments", {}))
        self.proofs[value] = [digest, input_digest(params), False]
        result = {
            "actionDigest": digest,
            "server": params["server"],
            "evidence": {"type": "dev.onrecord/handle", "value": value},
            "expiresAt": "2026-11-30T10:00:15Z",
            "operationId": params.get("operationId") or uuid7(),
        }
        return result_line(request.id, result)

    def _verify(self, request):
        return result_line(request.id, self.verdict(request.params))

    def verdict(self, params):
        evidence = params["evidence"]
        if evidence is None:
            return {"valid": False, "reason": "missing"}
        found = self.proofs.get(evidence["value"])
        if found is None:
            return {"valid": False, "reason": "invalid"}
        if found[0] != params["actionDigest"] or found[1] != params.get("inputDigest"):
            return {"valid": False, "reason": "mismatch"}
        if found[2]:
            return {"valid": False, "reason": "replayed"}
        found[2] = True
        checkpoint = {"seq": self.count, "size": self.count, "note": "example/authority/journal/1\n…"}
        return {"valid": True, "checkpoint": checkpoint, **({"approved": True} if self.approved else {})}


class FakeRecorder:
    """Keeps entries by source and number, as the recorder does."""

    def __init__(self):
        self.sources = {}
        self.failing = False
        self.forget = False

    def on_connect(self, connection):
        return True

    def on_disconnect(self, connection):
        return

    def on_broken(self, connection, answer):
        return answer

    @property
    def entries(self):
        return [entry for entries in self.sources.values() for entry in entries]

    def kinds(self):
        return [entry["kind"] for entry in self.entries]

    def on_request(self, connection, request):
        if request.method == "record/hello":
            connection.state = request.params["source"]
            known = self.sources.setdefault(connection.state, [])
            return result_line(
                request.id, {"version": "1", "through": known[-1]["n"] if known else 0, "status": "ok"}
            )
        if self.failing:
            return error_line(request.id, -33202, "Record unavailable", {"reason": "record_unavailable"})
        known = self.sources[connection.state]
        for entry in request.params["entries"]:
            last = known[-1]["n"] if known else 0
            if entry["n"] <= last:
                continue
            if (
                entry["n"] != last + 1
                and entry["kind"] != "gap"
                and (not known or known[-1]["kind"] != "gap")
            ):
                return error_line(request.id, -33201, "Gap", {"reason": "record_gap", "through": last})
            known.append(entry)
        return result_line(
            request.id, {"through": known[-1]["n"], "seq": len(known), "size": len(known), "note": None}
        )


class QuietServer(RpcServer):
    """Its end lets the transports of both sides close, so that no test leaves a descriptor open."""

    async def stop(self):
        for _ in range(10):
            await asyncio.sleep(0)
        await super().stop()
        for _ in range(10):
            await asyncio.sleep(0)


async def serve(handler, path, **more):
    server = QuietServer(handler, path=path, **more)
    await server.start()
    return server


async def run(log_path, sockets):
    handlers = {"authority": FakeAuthority(), "recorder": FakeRecorder()}
    log = open(log_path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115

    def logged(handler):
        plain = handler.on_request

        def on_request(connection, request):
            log.write(json.dumps([request.method, request.params]) + "\n")
            return plain(connection, request)

        handler.on_request = on_request
        return handler

    for handler in handlers.values():
        logged(handler)
    servers = [
        await serve(handlers[kind], Path(path), mode=0o666)
        for kind, path in (one.split("=", 1) for one in sockets)
    ]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()
    del servers


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2:]))
