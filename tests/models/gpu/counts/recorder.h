// What a GPU would run, recorded without running it: kernels, copies, and LibTorch's operators on tensors without data
// (device meta), each with the bytes of its operands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/device/gpu_device.h"
#include "models/device/kernel_call.h"

namespace longshort::models {

struct Node {
  std::string name;                      // of the kernel, the operator, or "upload", "download", "copy"
  std::vector<int64_t> read_bytes = {};  // of each tensor or copy that is read
  int64_t written_bytes = 0;
  std::optional<KernelCall> kernel = std::nullopt;

  bool is_copy() const { return name == "upload" || name == "download" || name == "copy"; }
};

using Nodes = std::vector<Node>;

// Returns their number, then that of each name: "3: Norm 2, mm 1".
std::string TextOfNodes(const Nodes& nodes);

// Records the operators that this thread calls during the recorder's lifetime, and the work of its devices.
//
// An operator is a node if it writes a tensor, is no view and no allocation, and calls no other such operator. Fused
// attention and a convolution are one node each, whatever they call.
class Recorder final {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Nodes& nodes() { return nodes_; }
  // Returns the nodes since the last call.
  Nodes Take() { return std::exchange(nodes_, {}); }

 private:
  Nodes nodes_;
  uint64_t callback_ = 0;
};

// A device whose copies run at once, whose kernels and graphs do not run, and whose memory is not filled: pages that
// are not touched cost nothing. The nodes of a graph count when it is replayed.
class RecordingDevice : public GpuDevice {
 public:
  // The nodes of each captured graph, in the order of the captures.
  virtual const std::vector<Nodes>& graphs() const = 0;
};

// The recorder must outlive the device.
std::unique_ptr<RecordingDevice> MakeRecordingDevice(Recorder& recorder);

}  // namespace longshort::models
