#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "server/options/machine.h"

namespace longshort::server::machine_limits_test {

// A root folder with the given files.
std::string MakeRoot(const std::string& name, const std::map<std::string, std::string>& files) {
  const std::filesystem::path root = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::remove_all(root);
  for (const auto& [path, text] : files) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  return root.string();
}

constexpr char kMeminfo[] = "MemTotal:        1000 kB\nMemFree:          10 kB\n";

TEST(MachineLimits, WithoutFilesOnlyAffinityCounts) {
  const MachineLimits limits = ReadMachineLimits(MakeRoot("nothing", {}));
  EXPECT_GE(limits.cpus, 1);
  EXPECT_EQ(limits.memory_bytes, 0);
}

TEST(MachineLimits, Version2BindsByTheGroupAndThoseAbove) {
  const std::string root = MakeRoot("v2", {{"proc/self/cgroup", "0::/outer/inner\n"},
                                           {"proc/meminfo", kMeminfo},
                                           {"sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n"},
                                           {"sys/fs/cgroup/outer/cpu.max", "150000 100000\n"},
                                           {"sys/fs/cgroup/outer/inner/memory.max", "600000\n"},
                                           {"sys/fs/cgroup/outer/memory.max", "500000\n"}});
  const MachineLimits limits = ReadMachineLimits(root);
  EXPECT_EQ(limits.cpus, 1);  // 1.5, rounded down
  EXPECT_EQ(limits.memory_bytes, 500000);
}

TEST(MachineLimits, MemoryHighIsALimitToo) {
  const std::string root = MakeRoot("high", {{"proc/self/cgroup", "0::/outer/inner\n"},
                                             {"proc/meminfo", kMeminfo},
                                             {"sys/fs/cgroup/outer/inner/memory.max", "600000\n"},
                                             {"sys/fs/cgroup/outer/inner/memory.high", "max\n"},
                                             {"sys/fs/cgroup/outer/memory.high", "300000\n"}});
  EXPECT_EQ(ReadMachineLimits(root).memory_bytes, 300000);
}

TEST(MachineLimits, AnUnlimitedGroupLeavesTheMachine) {
  const std::string root = MakeRoot("unlimited", {{"proc/self/cgroup", "0::/\n"},
                                                  {"proc/meminfo", kMeminfo},
                                                  {"sys/fs/cgroup/cpu.max", "max 100000\n"},
                                                  {"sys/fs/cgroup/memory.max", "max\n"}});
  EXPECT_EQ(ReadMachineLimits(root).memory_bytes, 1000 << 10);
}

TEST(MachineLimits, Version1HasAFolderPerController) {
  const std::string root = MakeRoot("v1", {{"proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/b\n"},
                                           {"proc/meminfo", kMeminfo},
                                           {"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n"},
                                           {"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"},
                                           {"sys/fs/cgroup/memory/b/memory.limit_in_bytes", "400000\n"}});
  const MachineLimits limits = ReadMachineLimits(root);
  EXPECT_EQ(limits.cpus, 1);  // half a CPU is still one thread
  EXPECT_EQ(limits.memory_bytes, 400000);
}

}  // namespace longshort::server::machine_limits_test
