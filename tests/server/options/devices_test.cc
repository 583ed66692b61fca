#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/options/machine.h"

namespace longshort::server::options_devices_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string WhyNot(const std::string& text) { return std::string(ParseDevices(text).status().message()); }

TEST(Devices, AreAListOfWorkersOnTheCpuAndGpusByNumber) {
  EXPECT_EQ(ParseDevices("cpu")->cpu_workers, 1);
  EXPECT_EQ(ParseDevices("cpu:64")->cpu_workers, 64);
  EXPECT_THAT(ParseDevices("cpu:2")->gpus, IsEmpty());
  const auto mixed = ParseDevices("cuda:1,cpu:2,cuda:0");
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(mixed->cpu_workers, 2);
  EXPECT_THAT(mixed->gpus, ElementsAre(1, 0));
  EXPECT_EQ(mixed->gpu_kind, models::DeviceKind::kCuda);
  EXPECT_EQ(mixed->workers(), 4);
  EXPECT_EQ(ParseDevices("emulated:1")->gpu_kind, models::DeviceKind::kEmulated);
  EXPECT_EQ(ParseDevices("cuda:63")->cpu_workers, 0);
}

TEST(Devices, WhatIsWrongIsSaid) {
  for (const auto& [text, why] :
       {std::pair("cpu,cpu", "cpu is listed twice"), std::pair("cpu:2,cuda:0,cpu", "cpu is listed twice"),
        std::pair("cpu:0", "the number of workers in cpu:0 must be 1 to 64"), std::pair("cpu:65", "must be 1 to 64"),
        std::pair("cpu:", "must be 1 to 64"), std::pair("cpu:2x", "must be 1 to 64"),
        std::pair("cuda", "'cuda' is not a GPU; write cuda:N"), std::pair("cuda:", "write cuda:N"),
        std::pair("cuda:-1", "0 to 63"), std::pair("cuda:64", "0 to 63"), std::pair("cuda:x", "0 to 63"),
        std::pair("cuda:1,cpu,cuda:1", "cuda:1 is listed twice"),
        std::pair("cuda:0,emulated:0", "of another kind than those"), std::pair("gpu", "no device 'gpu'; write cpu"),
        std::pair("", "no device ''"), std::pair("cpu,", "no device ''"),
        std::pair("cpu, cuda:0", "no device ' cuda:0'")}) {
    EXPECT_THAT(WhyNot(text), HasSubstr(why)) << text;
  }
}

TEST(Devices, ABuildForTheCpuOnlySaysWhatToWrite) {
  const MachineLimits machine;
  EXPECT_EQ(ParseServedDevices("cpu:3", machine)->cpu_workers, 3);
  EXPECT_EQ(ParseServedDevices("cpu:2,cuda:1", machine).status().message(),
            "cuda:1 is a GPU, and this build serves on the CPU only; leave it out");
  EXPECT_EQ(ParseServedDevices("cuda:0", machine).status().message(),
            "cuda:0 is a GPU, and this build serves on the CPU only; write cpu, or cpu:N for N workers");
  EXPECT_EQ(ParseServedDevices("cuda:0,cuda:0", machine).status(), ParseDevices("cuda:0,cuda:0").status());
}

TEST(Devices, AGpuThatTheMachineDoesNotHaveIsNamed) {
  const MachineLimits two = {.gpus = models::Gpus{.kind = models::DeviceKind::kCuda, .memory_bytes = {1000, 2000}}};
  EXPECT_TRUE(ParseServedDevices("cuda:1,cpu,cuda:0", two).ok());
  EXPECT_EQ(ParseServedDevices("cuda:2", two).status().message(),
            "there is no cuda:2; the GPUs of this machine are 2, up to cuda:1; write cpu, or cpu:N for N workers");
  EXPECT_THAT(std::string(ParseServedDevices("cpu,emulated:0", two).status().message()),
              HasSubstr("there is no emulated:0"));
  EXPECT_EQ(ParseServedDevices("cpu,cuda:0", {.gpus = models::Gpus()}).status().message(),
            "there is no cuda:0; the GPUs of this machine are none; leave it out");
}

TEST(Devices, WorkersOnTheCpuDivideTheThreads) {
  const std::vector<models::WorkerDevice> workers = WorkersOn({.cpu_workers = 2, .gpus = {3}}, 9);
  ASSERT_EQ(workers.size(), 3u);
  for (int i : {0, 1}) {
    EXPECT_EQ(workers[i].kind, models::DeviceKind::kCpu);
    EXPECT_EQ(workers[i].threads, 4);
  }
  EXPECT_EQ(models::DeviceName(workers[2]), "cuda:3");
  EXPECT_EQ(WorkersOn({.cpu_workers = 8}, 4).front().threads, 1);
  EXPECT_EQ(ThreadsPerWorker(4, {.gpus = {0}}), 4) << "loading is done on the CPU";
}

}  // namespace longshort::server::options_devices_test
