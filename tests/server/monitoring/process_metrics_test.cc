#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "server/monitoring/server_metrics.h"

namespace longshort::server::process_metrics_test {

using ::testing::ElementsAre;
using ::testing::Key;

std::map<std::string, double> Values() {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : CollectProcessMetrics()) {
    const prometheus::ClientMetric& metric = family.metric.at(0);
    values[family.name] = family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

TEST(ProcessMetrics, HaveTheNamesThatDashboardsKnow) {
  EXPECT_THAT(Values(), ElementsAre(Key("process_cpu_seconds_total"), Key("process_max_fds"), Key("process_open_fds"),
                                    Key("process_resident_memory_bytes"), Key("process_start_time_seconds"),
                                    Key("process_virtual_memory_bytes")));
}

TEST(ProcessMetrics, CountWhatTheProcessTakes) {
  auto before = Values();
  std::vector<char> memory(64 << 20, 1);
  std::FILE* const file = std::fopen("/dev/null", "r");
  auto now = Values();
  EXPECT_EQ(now["process_open_fds"], before["process_open_fds"] + 1);
  EXPECT_GT(now["process_resident_memory_bytes"], before["process_resident_memory_bytes"] + (60 << 20));
  EXPECT_GE(now["process_virtual_memory_bytes"], now["process_resident_memory_bytes"]);
  EXPECT_GT(now["process_cpu_seconds_total"], before["process_cpu_seconds_total"]);
  EXPECT_GT(now["process_max_fds"], now["process_open_fds"]);
  std::fclose(file);
  EXPECT_EQ(memory.back(), 1);
}

TEST(ProcessMetrics, TheStartIsWhenThisTestBegan) {
  const double since_start = static_cast<double>(std::time(nullptr)) - Values()["process_start_time_seconds"];
  EXPECT_GT(since_start, -2);
  EXPECT_LT(since_start, 600);
  // Who watches for restarts watches for changes.
  const double start = Values()["process_start_time_seconds"];
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Values()["process_start_time_seconds"], start);
}

}  // namespace longshort::server::process_metrics_test
