"""MCP by hand, for what the official client does not do: every line that comes is kept until a test asks for it."""

import json
import subprocess

ELICITING = {"elicitation": {"form": {}, "url": {}}}


class Conversation:
    """A legacy client at the pipes of a program."""

    def __init__(self, command, *, log, env=None, capabilities=ELICITING):
        self._log = open(log, "ab")  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=env
        )
        self._kept = []
        self._count = 0
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }
        self.opened = self.answer(self.request("initialize", hello))
        self.notify("notifications/initialized")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.stdout.read()
        self._process.wait(30)
        self._process.stdout.close()
        self._log.close()

    def send(self, message):
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def notify(self, method, params=None):
        self.send({"method": method, "params": params or {}})

    def request(self, method, params=None):
        """Send a request and return its id."""
        self._count += 1
        self.send({"id": self._count, "method": method, "params": params or {}})
        return self._count

    def call(self, name, arguments=None, **more):
        """Send a tools/call and return its id."""
        return self.request("tools/call", {"name": name, "arguments": arguments or {}, **more})

    def answer(self, request_id):
        """Return the answer to a request."""
        return self.wait(lambda message: "method" not in message and message.get("id") == request_id)

    def asked(self, method):
        """Return the next message of the server with this method."""
        return self.wait(lambda message: message.get("method") == method)

    def wait(self, is_wanted):
        """Return the first message that is wanted, of those that came or will come."""
        for index, message in enumerate(self._kept):
            if is_wanted(message):
                return self._kept.pop(index)
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if is_wanted(message):
                return message
            self._kept.append(message)
        raise AssertionError("the server ended")

    def tools(self):
        """Return the tools that the server advertises."""
        return self.answer(self.request("tools/list"))["result"]["tools"]
