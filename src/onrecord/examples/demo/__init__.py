"""The demonstration: the whole way of a tool call on this machine, with a scripted agent."""
