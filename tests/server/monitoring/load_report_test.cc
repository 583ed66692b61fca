#include "server/monitoring/load_report.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "server/monitoring/server_metrics.h"
#include "tests/core/fakes/fake_clock.h"

namespace longshort::server::load_report_test {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

// The published message xds.data.orca.v3.OrcaLoadReport, as far as the server fills it in.
class OrcaReader {
 public:
  OrcaReader() {
    google::protobuf::FileDescriptorProto file;
    file.set_name("orca_load_report.proto");
    file.set_syntax("proto3");
    google::protobuf::DescriptorProto& message = *file.add_message_type();
    message.set_name("OrcaLoadReport");
    const std::map<std::string, int> numbers = {{"cpu_utilization", 1},
                                                {"mem_utilization", 2},
                                                {"rps_fractional", 6},
                                                {"eps", 7},
                                                {"application_utilization", 9}};
    for (const auto& [name, number] : numbers) {
      google::protobuf::FieldDescriptorProto& field = *message.add_field();
      field.set_name(name);
      field.set_number(number);
      field.set_type(google::protobuf::FieldDescriptorProto::TYPE_DOUBLE);
      field.set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
    }
    type_ = pool_.BuildFile(file)->message_type(0);
  }

  // Fails the test if the bytes are no such message, or have fields that it does not have.
  std::map<std::string, double> Read(const std::string& bytes) {
    const std::unique_ptr<google::protobuf::Message> message(factory_.GetPrototype(type_)->New());
    EXPECT_TRUE(message->ParseFromString(bytes));
    const google::protobuf::Reflection& reflection = *message->GetReflection();
    EXPECT_TRUE(reflection.GetUnknownFields(*message).empty());
    std::map<std::string, double> fields;
    for (int i = 0; i < type_->field_count(); ++i) {
      fields[type_->field(i)->name()] = reflection.GetDouble(*message, type_->field(i));
    }
    return fields;
  }

 private:
  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_{&pool_};
  const google::protobuf::Descriptor* type_ = nullptr;
};

TEST(LoadReport, ReportsTheLastSeconds) {
  ServerMetrics metrics({1.0});
  MetricFamilies& families = metrics.families();
  core::FakeClock clock;
  LoadReport report(families, {.cpus = 2, .memory_bytes = int64_t{1} << 40}, clock);
  families.workers.Add({{"model", "m"}}).Set(2);
  families.workers.Add({{"model", "many workers"}}).Set(8);
  for (int i = 0; i < 60; ++i)
    metrics.CountRequest({.rpc = "Generate", .model = "m", .version = 1}, absl::StatusCode::kOk, absl::Seconds(1));
  for (int i = 0; i < 30; ++i)
    metrics.CountRequest({.rpc = "Generate", .model = ""}, absl::StatusCode::kNotFound, absl::Seconds(1));
  for (int i = 0; i < 10; ++i)
    metrics.CountRequest({.rpc = "Generate", .model = "m", .version = 1}, absl::StatusCode::kResourceExhausted,
                         absl::Seconds(1));
  families.step_duration.Add({{"model", "m"}}, families.latency_buckets).Observe(0.25);
  families.step_duration.Add({{"model", "many workers"}}, families.latency_buckets).Observe(0.9);
  families.batch_duration.Add({{"model", "idle"}}, families.latency_buckets).Observe(0.1);
  clock.Advance(absl::Seconds(4));
  std::map<std::string, double> load = OrcaReader().Read(report.Get());
  EXPECT_EQ(load["rps_fractional"], 100.0 / 4);
  EXPECT_EQ(load["eps"], 10.0 / 4) << "what another server would refuse, too, is no error";
  EXPECT_EQ(load["application_utilization"], 0.25 / 2 / 4) << "of two workers";
  EXPECT_THAT(load["mem_utilization"], AllOf(Ge(1e-7), Le(0.5)));
  EXPECT_THAT(load["cpu_utilization"], AllOf(Ge(0), Le(1.1)));
}

TEST(LoadReport, IsReadOnlyAFewTimesASecond) {
  ServerMetrics metrics({1.0});
  core::FakeClock clock;
  LoadReport report(metrics.families(), {}, clock);
  const std::string first = report.Get();
  metrics.CountRequest({.rpc = "Generate", .model = "m", .version = 1}, absl::StatusCode::kOk, absl::Seconds(1));
  clock.Advance(absl::Milliseconds(249));
  EXPECT_EQ(report.Get(), first);
  clock.Advance(absl::Milliseconds(1));
  EXPECT_EQ(OrcaReader().Read(report.Get())["rps_fractional"], 4) << "one call in a quarter of a second";
}

TEST(LoadReport, ReportsNoShareOfUnknownMemory) {
  ServerMetrics metrics({1.0});
  core::FakeClock clock;
  LoadReport report(metrics.families(), {}, clock);
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(OrcaReader().Read(report.Get())["mem_utilization"], 0);
}

TEST(LoadReport, MayBeAskedByManyAtOnce) {
  ServerMetrics metrics({1.0});
  LoadReport report(metrics.families(), {.memory_bytes = 1 << 30});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20000; ++n) {
        metrics.CountRequest({.rpc = "Generate", .model = "m", .version = 1}, absl::StatusCode::kOk, absl::Seconds(1));
        report.Get();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  OrcaReader().Read(report.Get());
}

}  // namespace longshort::server::load_report_test
