"""Native logs of AI agents to vCons: one importer per format behind one interface."""
