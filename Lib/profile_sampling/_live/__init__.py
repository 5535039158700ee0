"""The page of a process that runs, and its profiles by HTTP.

What this package owns is in InternalDocs/profile_sampling/reach.md.
"""
