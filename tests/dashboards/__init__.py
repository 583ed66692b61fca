"""deploy/grafana held against real servers and a real Prometheus."""
