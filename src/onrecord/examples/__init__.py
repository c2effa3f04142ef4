"""Example servers and the demonstration, shipped with the package."""
