#include "tests/models/gpu/counts/recorder.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/core/Tensor.h"
#include "ATen/core/function_schema.h"
#include "ATen/record_function.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "c10/core/Allocator.h"
#include "torch/library.h"

namespace longshort::models {
namespace {

// An operator that is being called.
struct Call final : at::ObserverContext {
  Call* caller = nullptr;
  Node node;
  bool is_counted = false;   // if no operator that it calls is
  bool is_one_node = false;  // whatever it calls
  bool has_counted_one = false;
};

thread_local Recorder* t_recorder = nullptr;
thread_local Call* t_call = nullptr;

int64_t BytesOf(const at::Tensor& tensor) {
  // An expanded tensor has more elements than its storage.
  const int64_t elements = tensor.numel() * static_cast<int64_t>(tensor.element_size());
  return tensor.has_storage() ? std::min<int64_t>(elements, static_cast<int64_t>(tensor.storage().nbytes())) : elements;
}

template <typename Visit>
void ForEachTensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  }
}

bool IsView(const c10::FunctionSchema& schema) {
  const auto aliases = [](const c10::Argument& returned) {
    return returned.alias_info() != nullptr && !returned.alias_info()->isWrite();
  };
  return std::any_of(schema.returns().begin(), schema.returns().end(), aliases);
}

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& function) {
  if (t_recorder == nullptr) return nullptr;
  auto call = std::make_unique<Call>();
  call->caller = std::exchange(t_call, call.get());
  const std::optional<c10::FunctionSchema> schema = function.operator_schema();
  if (!schema) return call;
  constexpr std::string_view kNamespace = "aten::";
  call->node.name = schema->name();
  if (call->node.name.starts_with(kNamespace)) call->node.name.erase(0, kNamespace.size());
  const std::string& name = call->node.name;
  call->is_one_node = name == "scaled_dot_product_attention" || name == "convolution";
  call->is_counted = !IsView(*schema) && name.find("empty") == std::string::npos && name != "_unsafe_view";
  const bool overwrites = name == "copy_" || name == "zero_" || name == "fill_";
  for (size_t i = 0; i < function.inputs().size() && i < schema->arguments().size(); ++i) {
    if (schema->arguments()[i].is_out() || (i == 0 && overwrites)) continue;
    ForEachTensor(function.inputs()[i],
                  [&call](const at::Tensor& tensor) { call->node.read_bytes.push_back(BytesOf(tensor)); });
  }
  return call;
}

void End(const at::RecordFunction& function, at::ObserverContext* context) {
  auto* const call = static_cast<Call*>(context);
  if (call == nullptr) return;
  t_call = call->caller;
  for (const c10::IValue& output : function.outputs()) {
    ForEachTensor(output, [call](const at::Tensor& tensor) { call->node.written_bytes += BytesOf(tensor); });
  }
  const bool counts = call->is_counted && call->node.written_bytes > 0 && (call->is_one_node || !call->has_counted_one);
  if (call->caller != nullptr) call->caller->has_counted_one |= counts || call->has_counted_one;
  for (const Call* caller = call->caller; caller != nullptr; caller = caller->caller) {
    if (caller->is_one_node) return;
  }
  if (counts) t_recorder->nodes().push_back(std::move(call->node));
}

// Gives tensors without data an address, which kernels take as an argument. No code reads or writes there.
class Addresses final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    char* const address = next_;
    next_ += bytes / 256 * 256 + 256;  // an empty tensor, too: it keeps its address when it is resized
    return {address, at::kMeta};
  }
  void copy_data(void*, const void*, size_t) const override {}

 private:
  char* next_ = reinterpret_cast<char*>(uint64_t{1} << 48);
};

// Results of operators for which LibTorch has no form without data.
at::Tensor Convolve(const at::Tensor& images, const at::Tensor& weight, const std::optional<at::Tensor>&,
                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool, at::IntArrayRef,
                    int64_t) {
  const auto size = [&](int64_t axis) {
    const int64_t taps = dilation[axis] * (weight.size(2 + axis) - 1) + 1;
    return (images.size(2 + axis) + 2 * padding[axis] - taps) / stride[axis] + 1;
  };
  return at::empty({images.size(0), weight.size(0), size(0), size(1)}, images.options());
}
std::tuple<at::Tensor, at::Tensor, at::Tensor> Normalize(const at::Tensor& rows, at::IntArrayRef,
                                                         const std::optional<at::Tensor>&,
                                                         const std::optional<at::Tensor>&, double) {
  const at::Tensor deviations = at::empty({rows.numel() / rows.size(-1)}, rows.options().dtype(at::kFloat));
  return {at::empty(rows.sizes(), rows.options()), deviations, at::empty_like(deviations)};
}
at::Tensor SelectRows(const at::Tensor& rows, int64_t dimension, const at::Tensor& index) {
  std::vector<int64_t> sizes = rows.sizes().vec();
  sizes[dimension < 0 ? dimension + rows.dim() : dimension] = index.numel();
  return at::empty(sizes, rows.options());
}
at::Tensor Attend(const at::Tensor& queries, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                  double, bool, std::optional<double>, bool) {
  // As on GPUs: an item's heads are behind each other.
  return at::empty({queries.size(0), queries.size(2), queries.size(1), queries.size(3)}, queries.options())
      .transpose(1, 2);
}
at::Tensor Relu(const at::Tensor& rows) { return at::empty(rows.sizes(), rows.options()); }

TORCH_LIBRARY_IMPL(aten, Meta, library) {
  library.impl("relu", Relu);
  library.impl("scaled_dot_product_attention", Attend);
  library.impl("index_select", SelectRows);
  library.impl("convolution_overrideable", Convolve);
  library.impl("native_layer_norm", Normalize);
}

struct Graph final : GpuGraph {
  size_t number = 0;
};

class Device final : public RecordingDevice {
 public:
  explicit Device(Recorder& recorder) : recorder_(recorder) {
    facts_ = {.name = "recording",
              .major = 9,
              .multiprocessors = 132,
              .memory_bytes = int64_t{1} << 40,
              .max_shared_bytes = 227 << 10};
  }

  const std::vector<Nodes>& graphs() const override { return graphs_; }
  const GpuFacts& facts() const override { return facts_; }

  absl::StatusOr<void*> Allocate(size_t bytes, GpuMemoryUse) override { return Map(bytes, memory_); }
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override { return Map(bytes, pinned_); }
  void Free(void* memory) override { Unmap(memory, memory_); }
  void FreePinned(void* memory) override { Unmap(memory, pinned_); }

  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    const bool up = IsPinned(from), down = IsPinned(to);
    recorder_.nodes().push_back({.name = up     ? "upload"
                                         : down ? "download"
                                                : "copy",
                                 .read_bytes = {static_cast<int64_t>(bytes)},
                                 .written_bytes = static_cast<int64_t>(bytes)});
    if (up) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Launch(const KernelCall& call) override {
    if (!call.empty()) recorder_.nodes().push_back({.name = call.name, .kernel = call});
    return absl::OkStatus();
  }
  absl::Status BeforeLibraryCalls() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<GpuEvent>> Record() override { return std::make_unique<GpuEvent>(); }
  absl::Status Wait(const GpuEvent&) override { return absl::OkStatus(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::StatusOr<absl::Duration> Elapsed(const GpuEvent&, const GpuEvent&) override { return absl::ZeroDuration(); }

  absl::StatusOr<std::unique_ptr<GpuGraph>> Capture(const std::function<absl::Status()>& body) override {
    Nodes before = recorder_.Take();
    LS_RETURN_IF_ERROR(body());
    auto graph = std::make_unique<Graph>();
    graph->number = graphs_.size();
    graphs_.push_back(std::exchange(recorder_.nodes(), std::move(before)));
    return graph;
  }
  absl::Status Replay(GpuGraph& graph) override {
    const Nodes& nodes = graphs_[static_cast<Graph&>(graph).number];
    recorder_.nodes().insert(recorder_.nodes().end(), nodes.begin(), nodes.end());
    return absl::OkStatus();
  }
  bool has_failed() override { return false; }

 private:
  using Pieces = std::map<char*, size_t>;

  static absl::StatusOr<void*> Map(size_t bytes, Pieces& pieces) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return absl::ResourceExhaustedError(absl::StrCat("no ", bytes, " bytes of addresses"));
    pieces[static_cast<char*>(memory)] = bytes;
    return memory;
  }
  static void Unmap(void* memory, Pieces& pieces) {
    if (memory == nullptr) return;
    const auto piece = pieces.find(static_cast<char*>(memory));
    munmap(memory, piece->second);
    pieces.erase(piece);
  }
  bool IsPinned(const void* memory) const {
    const auto* const address = static_cast<const char*>(memory);
    auto piece = pinned_.upper_bound(const_cast<char*>(address));
    if (piece == pinned_.begin()) return false;
    --piece;
    return address < piece->first + piece->second;
  }

  Recorder& recorder_;
  GpuFacts facts_;
  std::vector<Nodes> graphs_;
  Pieces memory_, pinned_;
};

}  // namespace

std::string TextOfNodes(const Nodes& nodes) {
  std::map<std::string, int64_t> counts;
  for (const Node& node : nodes) ++counts[node.name];
  return absl::StrCat(nodes.size(), ": ", absl::StrJoin(counts, ", ", absl::PairFormatter(" ")));
}

Recorder::Recorder() {
  static Addresses addresses;
  c10::SetAllocator(at::kMeta, &addresses, /*priority=*/1);
  t_recorder = this;
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(Begin, End).needsInputs(true).needsOutputs(true).scopes({at::RecordScope::FUNCTION}));
}

Recorder::~Recorder() {
  at::removeCallback(callback_);
  t_recorder = nullptr;
}

std::unique_ptr<RecordingDevice> MakeRecordingDevice(Recorder& recorder) { return std::make_unique<Device>(recorder); }

}  // namespace longshort::models
