"""What panels ask Prometheus, in PromQL."""

from __future__ import annotations

from dataclasses import dataclass

# Long enough for two scrapes, whatever the zoom: Grafana knows the scrape interval of its data source.
WINDOW = "$__rate_interval"
FAILURE = 'code=~"INTERNAL|UNKNOWN|UNAVAILABLE|DATA_LOSS"'
REFUSAL = 'code="RESOURCE_EXHAUSTED"'
# A line for each model version: what sums are taken by, and the legend.
BY_VERSION = "model, version"
VERSION = "{{model}} {{version}}"


@dataclass(frozen=True)
class Query:
    expression: str
    legend: str  # of each line, as Grafana has it: {{label}}


@dataclass(frozen=True)
class Scope:
    """Which series a dashboard is about: those that its variables leave."""

    matchers: tuple[str, ...]

    def select(self, metric: str, *more: str) -> str:
        return f"{metric}{{{', '.join((*self.matchers, *more))}}}"

    def up(self) -> str:
        """1 for each server that answers, 0 for one that is down. Their job may scrape other targets, too."""
        return f"({self.select('up')} and on (namespace, job, instance) last_over_time(longshort_build_info[1d]))"

    def total(self, metric: str, *more: str, by: str = "") -> str:
        """The sum of a gauge."""
        return f"{_sum(by)}({self.select(metric, *more)})"

    def rate(self, metric: str, *more: str, by: str = "") -> str:
        """By how much a counter rises each second."""
        return f"{_sum(by)}(rate({self.select(metric, *more)}[{WINDOW}]))"

    def quantile(self, share: float, histogram: str, *more: str, by: str = "") -> str:
        labels = f"le, {by}" if by else "le"
        return f"histogram_quantile({share:g}, {self.rate(f'{histogram}_bucket', *more, by=labels)})"

    def percentiles(self, histogram: str, *more: str, shares: tuple[float, ...] = (0.5, 0.95, 0.99)) -> list[Query]:
        return [Query(self.quantile(share, histogram, *more), f"{100 * share:g} %") for share in shares]

    def mean(self, histogram: str, *more: str, by: str = "") -> str:
        return f"{self.rate(f'{histogram}_sum', *more, by=by)} / {self.rate(f'{histogram}_count', *more, by=by)}"

    def share(self, counter: str, part: str, *more: str, by: str = "") -> str:
        """Which share of all are those with this label: 0 where there are none of them."""
        whole = self.rate(counter, *more, by=by)
        return f"({self.rate(counter, *more, part, by=by)} or 0 * {whole}) / {whole}"


def _sum(by: str) -> str:
    return f"sum by ({by}) " if by else "sum"


JOB = 'job=~"$job"'
# Series of one model version: its calls and its engine.
MODELS = Scope((JOB, 'model=~"$model"', 'version=~"$version"'))
# Series of one server.
SERVERS = Scope((JOB, 'instance=~"$instance"'))
# Series with neither label, in dashboards of models.
PROCESSES = Scope((JOB,))
