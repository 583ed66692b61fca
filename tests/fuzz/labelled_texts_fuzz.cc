// Reads any bytes as labelled texts: a table or JSON Lines, in UTF-8 or another encoding. They are rejected with a
// short printable message, or each example is as the format says.
//
// The first byte of the input chooses the format (its lowest 3 bits), the problem and the encoding. The file follows.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "base/utf8.h"
#include "models/train/labelled_texts.h"
#include "tests/fuzz/require.h"

namespace longshort::models {
namespace {

void RequireGoodError(const absl::Status& status) {
  Require(status.code() == absl::StatusCode::kInvalidArgument, "a broken file is an invalid argument");
  const std::string message(status.message());
  Require(message.size() < 5000, "a message is short, however long the file");
  Require(IsUtf8(message), "a message is UTF-8");
  for (const char c : message) Require(static_cast<unsigned char>(c) >= ' ', "a message has no control characters");
}

void RequireGoodExample(const LabelledExample& example, const TextFormat& format) {
  Require(example.place.starts_with("fuzz:"), "an example has a place");
  Require(std::ssize(example.content) == format.documents, "an example has the model's documents");
  Require(format.problem == ProblemType::kMultiLabel || example.labels.size() == 1, "one label, or a number");
  for (const std::string& label : example.labels) Require(IsUtf8(label), "labels are UTF-8");
  for (const std::string& document : example.content) Require(IsUtf8(document), "texts are UTF-8");
}

}  // namespace
}  // namespace longshort::models

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort::models;
  if (size == 0) return 0;
  constexpr const char* kEncodings[] = {kUtf8, "windows-1252", "utf-16", "utf-32le"};
  constexpr ProblemType kProblems[] = {ProblemType::kSingleLabel, ProblemType::kMultiLabel, ProblemType::kRegression};
  const int form = data[0] % 8;
  TextFormat format;
  format.problem = kProblems[data[0] / 8 % 3];
  format.encoding = kEncodings[data[0] / 64];
  format.documents = form == 3 ? 2 : 1;  // only JSON Lines have two

  const auto file = ToUtf8(std::string(reinterpret_cast<const char*>(data) + 1, size - 1), format.encoding, "fuzz");
  if (!file.ok()) {
    RequireGoodError(file.status());
    return 0;
  }
  const std::string_view content = longshort::WithoutByteOrderMark(*file);
  const auto examples = form < 4 ? ParseLabelledLines(content, format, "fuzz")
                                 : ParseLabelledTable(content, form == 4 ? '\t' : ',', format, "fuzz");
  if (!examples.ok()) {
    RequireGoodError(examples.status());
    return 0;
  }
  for (const LabelledExample& example : *examples) RequireGoodExample(example, format);
  return 0;
}
