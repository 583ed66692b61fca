#include "tests/models/ops/factory_calls.h"

#include <algorithm>

#include "ATen/core/function_schema.h"
#include "ATen/record_function.h"

namespace longshort::models {
namespace {

// The recorder of the calling thread; null between calls.
thread_local std::vector<std::string>* found = nullptr;

std::unique_ptr<at::ObserverContext> OnCall(const at::RecordFunction& call) {
  const auto schema = call.operator_schema();
  if (!schema.has_value() || found == nullptr) return nullptr;
  const auto& arguments = schema->arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].type()->isSubtypeOf(*c10::TensorType::get()))
      return nullptr;  // the result is on that tensor's device
    if (arguments[i].name() == "device" && call.inputs()[i].isNone()) found->push_back(call.name());
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> FactoriesWithoutDevice(const std::function<void()>& run) {
  std::vector<std::string> calls;
  found = &calls;
  const at::CallbackHandle handle = at::addThreadLocalCallback(at::RecordFunctionCallback(OnCall).needsInputs(true));
  run();
  at::removeCallback(handle);
  found = nullptr;
  return calls;
}

}  // namespace longshort::models
