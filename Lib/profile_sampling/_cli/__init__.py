"""The command line: python -m profile_sampling."""
