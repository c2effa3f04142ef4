"""Bindings for tools as a server advertises them, so that a test may call each of them."""

from onrecord.authorize.policy import schema_hash

_HOST = {"fetch": {"url": {"json": "string", "fact": "host"}}}
"""Arguments of which policy has to know more than their type."""


def bindings_for(tools):
    """Return a binding for each tool: every argument has the types of the schema, and the starter policy allows it."""
    return [
        {
            "tool": tool.name,
            "inputSchemaSha256": schema_hash(tool.input_schema),
            "op": "read",
            "impact": 0,
            "arguments": {
                name: {"json": _types(member)}
                for name, member in tool.input_schema.get("properties", {}).items()
            }
            | _HOST.get(tool.name, {}),
        }
        for tool in tools
    ]


def _types(member):
    kind = member.get("type", "string")
    return kind if isinstance(kind, str) else list(kind)
