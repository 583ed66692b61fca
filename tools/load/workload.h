// One kind of request, and how often it comes. A run mixes any number of them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace longshort::load {

// Whole numbers from `least` to `most`, both included, each equally likely.
struct Range {
  int64_t least = 0;
  int64_t most = 0;
};

enum class Rpc { kGenerateStream, kScoreText, kClassifyImage };

// "GenerateStream" etc.
const char* NameOf(Rpc rpc);

struct Workload {
  Rpc rpc = Rpc::kGenerateStream;
  // Of the run's report; the rpc's word if not given.
  std::string name;
  // Which model; empty for the server's only one.
  std::string model;

  // By the Open Inference Protocol, not longshort.v1: documents and pixels only.
  bool open_inference = false;

  // Open loop: requests per second, as a Poisson process. 0: closed loop.
  double rate = 0;
  // Closed loop: so many callers, each sending its next request when it has its answer.
  int64_t concurrency = 1;
  // No more requests than this; 0: as many as fit in the time.
  int64_t requests = 0;

  // Tokens of the prompt or of each document.
  Range prompt = {64, 64};
  // Tokens to generate.
  Range tokens = {16, 16};
  // The first `shared` tokens of a prompt are the same in every request with the same prefix number, in every run; what
  // follows them differs from request to request and from seed to seed.
  int64_t shared = 0;
  // The number of the first prefix, and how many numbers take turns.
  int64_t prefix = 0;
  int64_t prefixes = 1;
  // Prompts are token ids in this range. {0, 0}: lower-case text, a byte for each token.
  Range ids;

  // Documents or images in a call.
  int64_t items = 1;
  // Images of so many pixels a side, made by the seed, sent as pixels.
  int64_t image_side = 224;
  // An image file, sent instead.
  std::string image_file;

  // The deadline of each call; infinite: none.
  absl::Duration deadline = absl::InfiniteDuration();
  // One pair of call metadata; no key, no pair.
  std::string metadata_key;
  std::string metadata_value;
  // Metadata `authorization` of each call, by the token of --token-file; empty: none.
  std::string authorization;

  bool open_loop() const { return rate > 0; }
};

// Reads "generate,prompt=64:256,tokens=32,rate=5". Errors: INVALID_ARGUMENT naming the key, its value and the limit.
absl::StatusOr<Workload> ParseWorkload(const std::string& text);

// What ParseWorkload takes, for --help.
std::string WorkloadHelp();

}  // namespace longshort::load
