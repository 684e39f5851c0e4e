"""The output of InfiniBand's own tools as records: pure functions from text, one module a tool.

Running the tools, with a time limit, is the business of a collector.
"""
