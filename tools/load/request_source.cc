#include "tools/load/request_source.h"

#include <cmath>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort::load {
namespace {

// Draws by SplitMix64, which is fast, and the same on every machine.
class Draws final {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  int64_t From(const Range& range) {
    return range.min + static_cast<int64_t>(Next() % static_cast<uint64_t>(range.max - range.min + 1));
  }

 private:
  uint64_t state_;
};

// Selects an independent sequence of numbers for each use of one seed.
enum class Purpose : uint64_t { kLengths = 1, kPrefix, kPrompt, kPixels };

Draws DrawsFor(Purpose purpose, uint64_t seed, uint64_t index) {
  const uint64_t mixed = Draws(seed ^ (static_cast<uint64_t>(purpose) << 56)).Next();
  return Draws(Draws(mixed + index).Next());
}

void AddTokens(Draws draws, int64_t count, const Range& ids, v1::Input& input) {
  if (ids.max > 0) {
    for (int64_t i = 0; i < count; ++i) input.mutable_ids()->add_ids(static_cast<int32_t>(draws.From(ids)));
    return;
  }
  // The text has words of about 7 letters.
  std::string& text = *input.mutable_text();
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t draw = draws.Next();
    text.push_back(draw % 8 == 0 ? ' ' : static_cast<char>('a' + (draw >> 8) % 26));
  }
}

// Returns a request with one raw input, as standard clients send it.
inference::ModelInferRequest MakeInfer(const std::string& model, const char* name, const char* datatype,
                                       std::initializer_list<int64_t> shape, std::string raw) {
  inference::ModelInferRequest message;
  message.set_model_name(model);
  auto& input = *message.add_inputs();
  input.set_name(name);
  input.set_datatype(datatype);
  for (const int64_t size : shape) input.add_shape(size);
  message.add_raw_input_contents(std::move(raw));
  return message;
}

}  // namespace

absl::StatusOr<RequestSource> RequestSource::Create(const Workload& workload, uint64_t seed) {
  RequestSource source(workload, seed);
  if (workload.image_file.empty()) return source;
  std::ifstream file(workload.image_file, std::ios::binary);
  std::ostringstream image;
  image << file.rdbuf();  // a directory has no content, which sets failbit of `image`
  source.image_ = image.str();
  if (!file.is_open() || source.image_.empty()) {
    return absl::NotFoundError(absl::StrCat("the image ", workload.image_file, " cannot be read"));
  }
  return source;
}

Request RequestSource::Make(int64_t index) const {
  switch (workload_.rpc) {
    case Rpc::kGenerateStream:
      return Generate(index);
    case Rpc::kScoreText:
      if (workload_.open_inference) return InferDocuments(index);
      return Score(index);
    case Rpc::kClassifyImage:
      break;
  }
  if (workload_.open_inference) return InferPixels(index);
  return Classify(index);
}

v1::Input RequestSource::Prompt(int64_t index, uint64_t draw) const {
  const int64_t length = DrawsFor(Purpose::kLengths, seed_, draw).From(workload_.prompt);
  const auto prefix = static_cast<uint64_t>(workload_.prefix + index % workload_.prefixes);
  v1::Input input;
  // The prefix does not depend on the seed, so that another run can send the same one.
  AddTokens(DrawsFor(Purpose::kPrefix, 0, prefix), workload_.shared, workload_.ids, input);
  AddTokens(DrawsFor(Purpose::kPrompt, seed_, draw), length - workload_.shared, workload_.ids, input);
  return input;
}

v1::GenerateRequest RequestSource::Generate(int64_t index) const {
  v1::GenerateRequest request;
  request.mutable_model()->set_name(workload_.model);
  *request.mutable_prompt() = Prompt(index, static_cast<uint64_t>(index));
  Draws draws = DrawsFor(Purpose::kLengths, ~seed_, static_cast<uint64_t>(index));
  request.set_max_tokens(draws.From(workload_.tokens));
  request.mutable_sampling()->set_seed(draws.Next());
  // Raw bytes arrive with every token. Text would arrive only in whole characters.
  request.set_return_raw(true);
  return request;
}

v1::ScoreTextRequest RequestSource::Score(int64_t index) const {
  v1::ScoreTextRequest request;
  request.mutable_model()->set_name(workload_.model);
  const auto draw = static_cast<uint64_t>(index * workload_.documents);
  *request.add_inputs() = Prompt(index, draw);
  if (workload_.documents == 2) *request.add_second_inputs() = Prompt(index, draw + 1);
  return request;
}

v1::ClassifyImageRequest RequestSource::Classify(int64_t index) const {
  v1::ClassifyImageRequest request;
  request.mutable_model()->set_name(workload_.model);
  v1::Image& image = *request.add_images();
  if (!image_.empty()) {
    image.set_encoded(image_);
    return request;
  }
  Draws draws = DrawsFor(Purpose::kPixels, seed_, static_cast<uint64_t>(index));
  v1::ImageTensor& tensor = *image.mutable_tensor();
  tensor.set_height(static_cast<int32_t>(workload_.image_side));
  tensor.set_width(static_cast<int32_t>(workload_.image_side));
  tensor.set_channels(3);
  std::string& pixels = *tensor.mutable_uint8_values();
  pixels.resize(static_cast<size_t>(workload_.image_side * workload_.image_side * 3));
  for (char& value : pixels) value = static_cast<char>(draws.Next() >> 56);
  return request;
}

inference::ModelInferRequest RequestSource::InferDocuments(int64_t index) const {
  const v1::ScoreTextRequest request = Score(index);
  const std::string& text = request.inputs(0).text();
  const auto length = static_cast<uint32_t>(text.size());
  std::string raw(reinterpret_cast<const char*>(&length), sizeof(length));
  return MakeInfer(workload_.model, "document", "BYTES", {1, 1}, raw + text);
}

inference::ModelInferRequest RequestSource::InferPixels(int64_t index) const {
  const int64_t side = workload_.image_side;
  return MakeInfer(workload_.model, "image", "UINT8", {1, side, side, 3},
                   Classify(index).images(0).tensor().uint8_values());
}

absl::Duration PoissonArrivals::Next() {
  // 53 random bits: u is in [0, 1), and the logarithm's argument in (0, 1].
  const double u = static_cast<double>(random_() >> 11) * 0x1p-53;
  last_ += absl::Seconds(-std::log1p(-u) / per_second_);
  return last_;
}

}  // namespace longshort::load
