"""May exactly this call run now? Digest, authority, policy, evidence, guard, connector, supervisor.

Import what you need from its modules: a program that asks for proofs uses `onrecord.authorize.client`.
"""
