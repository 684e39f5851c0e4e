"""Metrics that others keep or serve: a Prometheus-compatible store asked, an exporter scraped.

`profiles/` says what their series mean to us, `places` where they belong, `table` turns readings into frames.
"""
