#include "models/weights/model_directory.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"

namespace longshort::models {
namespace {

constexpr size_t kConfigLimitBytes = size_t{1} << 20;
constexpr size_t kListLimitBytes = size_t{64} << 20;

absl::Status AddBytes(const std::string& name, const StoredBytes& bytes, FingerprintHash& hash) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  std::string piece(std::min(kPiece, bytes.size()), '\0');
  LS_RETURN_IF_ERROR(hash.Begin(name, bytes.size()));
  for (int64_t offset = 0; offset < bytes.size(); offset += kPiece) {
    piece.resize(std::min(kPiece, bytes.size() - offset));
    LS_RETURN_IF_ERROR(bytes.Read(offset, absl::MakeSpan(reinterpret_cast<std::byte*>(piece.data()), piece.size())));
    LS_RETURN_IF_ERROR(hash.Continue(piece));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Fingerprint(const ModelDirectory& directory) {
  LS_ASSIGN_OR_RETURN(FingerprintHash hash, FingerprintHash::Create());
  LS_RETURN_IF_ERROR(hash.Add("config.json", directory.config_text));
  if (directory.vocabulary_text) LS_RETURN_IF_ERROR(hash.Add("vocabulary.txt", *directory.vocabulary_text));
  if (directory.tokenizer_text) LS_RETURN_IF_ERROR(hash.Add("tokenizer.json", *directory.tokenizer_text));
  if (directory.labels_text) LS_RETURN_IF_ERROR(hash.Add("labels.txt", *directory.labels_text));
  LS_RETURN_IF_ERROR(AddBytes("model.safetensors", directory.weights.bytes(), hash));
  return hash.Finish();
}

}  // namespace

absl::StatusOr<ModelDirectory> OpenModelDirectory(const std::string& path,
                                                  const std::function<absl::Status(const ModelDirectory&)>& check,
                                                  const std::function<bool()>& stop_requested) {
  LS_ASSIGN_OR_RETURN(std::string config, ReadTextFile(path + "/config.json", kConfigLimitBytes));
  LS_ASSIGN_OR_RETURN(std::optional<std::string> vocabulary,
                      ReadOptionalTextFile(path + "/vocabulary.txt", kListLimitBytes));
  LS_ASSIGN_OR_RETURN(std::optional<std::string> tokenizer,
                      ReadOptionalTextFile(path + "/tokenizer.json", kListLimitBytes));
  LS_ASSIGN_OR_RETURN(std::optional<std::string> labels, ReadOptionalTextFile(path + "/labels.txt", kListLimitBytes));
  LS_ASSIGN_OR_RETURN(SafetensorsFile weights, SafetensorsFile::Open(path + "/model.safetensors", stop_requested));
  ModelDirectory directory{
      path, std::move(config), std::move(vocabulary), std::move(tokenizer), std::move(labels), std::move(weights), ""};
  if (check != nullptr) LS_RETURN_IF_ERROR(check(directory));
  LS_ASSIGN_OR_RETURN(directory.fingerprint, Fingerprint(directory));
  return directory;
}

absl::StatusOr<std::vector<std::string>> ParseLabels(std::string_view text, int64_t classes, const std::string& name) {
  std::vector<std::string> labels;
  text = WithoutByteOrderMark(text);
  int64_t lines = 0;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    ++lines;
    if (line.empty() || !IsUtf8(line)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: line %d is %s; it must be a label", name, lines, line.empty() ? "empty" : "not UTF-8"));
    }
    if (lines <= classes) labels.emplace_back(line);
  }
  if (lines != classes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: there are %d labels, the model has %d classes", name, lines, classes));
  }
  return labels;
}

}  // namespace longshort::models
