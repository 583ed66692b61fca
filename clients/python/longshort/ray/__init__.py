"""Scores and classifies Ray datasets with Longshort servers.

    scored = longshort.ray.score(ray.data.read_parquet("corpus"), server="longshort-servers:8500", model="enwiki")
    scored.write_parquet("scored")

Needs `pip install './clients/python[ray]'`, on each node of the cluster.
"""

from __future__ import annotations

from longshort._extras import missing

try:
    from longshort.ray.own_server import StartServer
    from longshort.ray.scoring import RayOptions, classify, score
except ModuleNotFoundError as error:
    raise missing("longshort.ray", "ray", error) from None

__all__ = ["RayOptions", "StartServer", "classify", "score"]
