"""The tamper-evident journal: records under a Merkle tree, signed checkpoints, verification."""
