"""Stands in an MCP client's configuration in place of a server: gets a proof for each call and attaches it."""

from onrecord.authorize.connector.service import run_connector

__all__ = ["run_connector"]
