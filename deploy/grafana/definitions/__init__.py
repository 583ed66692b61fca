"""Longshort's Grafana dashboards, a module each. deploy/grafana/generate writes them."""
