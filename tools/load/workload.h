// A kind of request and its rate. A run mixes any number of workloads.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace longshort::load {

// A uniform distribution over the integers in [min, max].
struct Range {
  int64_t min = 0;
  int64_t max = 0;
};

enum class Rpc { kGenerateStream, kScoreText, kClassifyImage };

// Returns the name of the RPC, such as "GenerateStream".
const char* NameOf(Rpc rpc);

struct Workload {
  Rpc rpc = Rpc::kGenerateStream;
  // Name in the report; by default the word that selects the RPC.
  std::string name;
  // Name of the model; empty for the server's only one.
  std::string model;

  // Use the Open Inference Protocol instead of longshort.v1. Only for documents and pixels.
  bool open_inference = false;

  // Mean requests per second of an open loop, a Poisson process. 0: closed loop.
  double rate = 0;
  // Callers of a closed loop. Each sends its next request when it has its answer.
  int64_t concurrency = 1;
  // Maximum number of requests; 0: no limit.
  int64_t requests = 0;

  // Number of tokens of the prompt or of each document.
  Range prompt = {64, 64};
  // Number of tokens to generate.
  Range tokens = {16, 16};
  // The first `shared` tokens of a prompt depend only on its prefix number. They are equal in all runs. The other
  // tokens differ between requests and between seeds.
  int64_t shared = 0;
  // Requests use the prefix numbers from `prefix` to `prefix` + `prefixes` - 1 in turn.
  int64_t prefix = 0;
  int64_t prefixes = 1;
  // Range of the prompt's token ids. {0, 0}: the prompt is lower-case text, one byte per token.
  Range ids;

  // Number of documents in a call: 2 for classifiers of two documents.
  int64_t documents = 1;
  // Side of the images in pixels. They are random, and sent as pixels.
  int64_t image_side = 224;
  // Image file to send instead of random pixels.
  std::string image_file;

  // Deadline of each call; infinite: none.
  absl::Duration deadline = absl::InfiniteDuration();
  // Value of the metadata `authorization`, made from --token-file; empty: none.
  std::string authorization;

  bool open_loop() const { return rate > 0; }
};

// Parses text such as "generate,prompt=64:256,tokens=32,rate=5".
// Errors: INVALID_ARGUMENT naming the key, its value and the limit.
absl::StatusOr<Workload> ParseWorkload(const std::string& text);

// Describes the syntax of ParseWorkload for --help.
std::string WorkloadHelp();

}  // namespace longshort::load
