"""Ray datasets scored and classified by Longshort servers.

    scored = longshort.ray.score(ray.data.read_parquet("corpus"), server="longshort-servers:8500", model="enwiki")
    scored.write_parquet("scored")

Needs `pip install 'longshort[ray]'`, on each node of the cluster.
"""

from __future__ import annotations

try:
    from longshort.ray.own_server import StartServer
    from longshort.ray.scoring import RayOptions, classify, score
except ModuleNotFoundError as error:
    if (error.name or "longshort").startswith("longshort"):
        raise
    missing = (error.name or "").partition(".")[0]
    raise ModuleNotFoundError(f"longshort.ray needs {missing}: pip install 'longshort[ray]'", name=missing) from None

__all__ = ["RayOptions", "StartServer", "classify", "score"]
