"""The rules, one module each; the module's name begins with the rule's id.

`prime_core.check.registry` finds them. A new rule needs its page in docs/checks and its two
fixtures in tests/check, which tests demand.
"""
