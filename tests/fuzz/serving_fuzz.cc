// Parses any text as serving.json. It is rejected with a message, or the engines accept the options.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/classification/item_queue.h"
#include "core/generation/request_queue.h"
#include "core/schedule/step_planner.h"
#include "server/options/machine.h"
#include "server/options/serving_options.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto options = server::ParseServingOptions(text, "fuzz", server::ServingOptions());
  if (!options.ok()) {
    Require(options.status().code() == absl::StatusCode::kInvalidArgument, "a broken file is an invalid argument");
    Require(options.status().message().substr(0, 6) == "fuzz: ", "the message starts with the file");
    return 0;
  }
  Require(core::RequestQueue::Check({.limits = options->limits, .order = options->order}).ok(),
          "queues take the limits");
  Require(core::StepPlanner::Check({.rounds = options->order.rounds}).ok(), "steps take the weights");
  core::ItemQueue::Options items = {.limits = options->limits};
  items.batches = {.max_batch_size = options->max_batch_size,
                   .max_batch_tokens = options->max_batch_tokens,
                   .max_queue_delay = options->max_queue_delay,
                   .order = options->order};
  Require(core::ItemQueue::Check(items).ok(), "batches take the options");
  Require(server::ParseDevices(options->devices).ok(), "the devices are some");
  Require(options->version_policy.Choose({1, 2, 3}).size() <= 3, "versions are chosen of those that there are");
  const bool classifier = server::CheckKind(*options, "fuzz", server::ModelKind::kClassifier).ok();
  const bool language_model = server::CheckKind(*options, "fuzz", server::ModelKind::kLanguageModel).ok();
  Require(classifier || language_model || options->given.size() > 1, "each field is of some kind of model");
  return 0;
}
