"""Families of workloads, one file each.

A family has work(run), which goes on until run.over() says so, and declares
which of its functions calls which; see callgraph.py.
"""
