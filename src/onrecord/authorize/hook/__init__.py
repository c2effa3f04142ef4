"""The SDK hook: one line protects an MCP server of your own. See `docs/protect-your-own-server.md`."""

from onrecord.authorize.hook.protection import protect, serve_stdio

__all__ = ["protect", "serve_stdio"]
