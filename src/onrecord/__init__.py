"""onrecord puts AI agents' tool calls on the record.

Rooms: `describe` (who is this agent), `authorize` (may exactly this call run now), `record` (what happened,
and is the record whole) and `review` (what does the record show). `base` is what they share.
"""

__version__ = "0.1.0"
