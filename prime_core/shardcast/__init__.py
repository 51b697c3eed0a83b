"""SHARDCAST: policy versions from the trainer to every node through relays (INTELLECT-2, 2.2).

Origin, relay and client are processes of their own, and they meet in HTTP. Nothing that a relay
says is believed: the trainer's signature and the hashes that it signed decide.
"""
