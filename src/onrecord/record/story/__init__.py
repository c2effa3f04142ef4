"""The story of a vCon for people: who, when, which operations, what policy said, how each attempt went.

`tell` makes the story as data, `render` shows it with rich. Content is shown in short excerpts, written out so that
nothing in it reaches the terminal or is taken for markup.
"""

from onrecord.record.story.model import Entry, OperationStory, SessionStory, StandingStory, Story
from onrecord.record.story.rendering import Rendering, render
from onrecord.record.story.telling import tell

__all__ = [
    "Entry",
    "OperationStory",
    "Rendering",
    "SessionStory",
    "StandingStory",
    "Story",
    "render",
    "tell",
]
