"""What every room shares: strict JSON, hashes, dates, ids, keys, signatures, sockets, errors.

Imports nothing of ours.
"""
