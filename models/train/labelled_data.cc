#include "models/train/labelled_data.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/weights/model_directory.h"

namespace longshort::models {
namespace {

constexpr size_t kImageLimitBytes = size_t{1} << 26;

// The sorted paths of the folders, or of the regular files, in `directory`.
absl::StatusOr<std::vector<std::filesystem::path>> Entries(const std::filesystem::path& directory, bool folders) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code unknown;  // for example of a link to itself, which is neither
    if (entry->path().filename().string().starts_with('.')) continue;  // .DS_Store, .ipynb_checkpoints
    if (folders ? entry->is_directory(unknown) : entry->is_regular_file(unknown)) paths.push_back(entry->path());
  }
  if (error) return absl::NotFoundError(absl::StrCat(directory.string(), ": cannot be listed: ", error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<LabelledText> ParseLine(std::string_view line, int64_t documents, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::Parse(line, name));
  constexpr std::string_view kFields[] = {"label", "text", "second_text"};
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(absl::MakeConstSpan(kFields).first(documents + 1)));
  LabelledText text;
  LS_ASSIGN_OR_RETURN(text.label, fields.Text("label"));
  if (text.label.empty() || text.label.find('\n') != std::string::npos) {
    return fields.OutOfRange("label", "one line that is not empty");
  }
  for (int64_t document = 0; document < documents; ++document) {
    LS_ASSIGN_OR_RETURN(std::string content, fields.Text(kFields[document + 1]));
    text.documents.push_back(std::move(content));
  }
  return text;
}

absl::StatusOr<TokenItem> Tokenise(const LabelledText& text, const TextClassifierConfig& config,
                                   const TextEncoder& tokenizer, const std::string& name) {
  TokenItem item;
  for (const std::string& document : text.documents) {
    absl::StatusOr<std::vector<int32_t>> ids = tokenizer.Encode(document);
    if (!ids.ok()) return absl::Status(ids.status().code(), absl::StrCat(name, ": ", ids.status().message()));
    if (static_cast<int64_t>(ids->size()) > config.MaxDocumentTokens()) ids->resize(config.MaxDocumentTokens());
    if (std::all_of(ids->begin(), ids->end(), [](int32_t id) { return id == 0; })) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": a document has no tokens"));
    }
    item.documents.push_back(*std::move(ids));
  }
  return item;
}

}  // namespace

absl::Status CheckLabelCount(absl::Span<const std::string> labels, int64_t classes, const std::string& name) {
  if (static_cast<int64_t>(labels.size()) != classes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has ", labels.size(), " labels, the model has ", classes, " classes"));
  }
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> read,
                      ParseLabels(LabelsText(labels), classes, absl::StrCat(name, ": its labels as labels.txt")));
  for (size_t i = 0; i < read.size(); ++i) {
    if (read[i] != labels[i]) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": label ", QuoteForMessage(labels[i]),
                                                     " would be read from labels.txt as ", QuoteForMessage(read[i])));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ClassOf(absl::Span<const std::string> labels, const std::string& label,
                                const std::string& name) {
  const auto found = std::lower_bound(labels.begin(), labels.end(), label);
  if (found == labels.end() || *found != label) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": label ", QuoteForMessage(label), " is not in the training data"));
  }
  return found - labels.begin();
}

std::string LabelsText(absl::Span<const std::string> labels) {
  std::string text;
  for (const std::string& label : labels) absl::StrAppend(&text, label, "\n");
  return text;
}

at::Tensor CertainTargets(absl::Span<const int64_t> targets, int64_t classes) {
  return at::one_hot(at::tensor(at::ArrayRef<int64_t>(targets.data(), targets.size())), classes).to(at::kFloat);
}

absl::StatusOr<std::vector<ImageFile>> ReadImageFolder(const std::string& directory, std::vector<std::string>& labels) {
  LS_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> folders, Entries(directory, /*folders=*/true));
  if (labels.empty()) {
    for (const std::filesystem::path& folder : folders) labels.push_back(folder.filename().string());
  }
  std::vector<ImageFile> images;
  for (const std::filesystem::path& folder : folders) {
    LS_ASSIGN_OR_RETURN(const int64_t target, ClassOf(labels, folder.filename().string(), folder.string()));
    LS_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> files, Entries(folder, /*folders=*/false));
    for (const std::filesystem::path& file : files) {
      LS_ASSIGN_OR_RETURN(std::string bytes, ReadTextFile(file.string(), kImageLimitBytes));
      images.push_back({.path = file.string(), .bytes = std::move(bytes), .target = target});
    }
  }
  if (images.empty()) return absl::InvalidArgumentError(absl::StrCat(directory, ": its folders contain no file"));
  return images;
}

absl::StatusOr<std::vector<LabelledText>> ParseLabelledTexts(std::string_view lines, int64_t documents,
                                                             const std::string& name) {
  std::vector<LabelledText> texts;
  if (lines.starts_with("\xef\xbb\xbf")) lines.remove_prefix(3);
  for (int64_t number = 1; !lines.empty(); ++number) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string place = absl::StrCat(name, ":", number);
    LS_ASSIGN_OR_RETURN(LabelledText text, ParseLine(line, documents, place));
    text.place = place;
    texts.push_back(std::move(text));
  }
  if (texts.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": contains no labelled text"));
  return texts;
}

std::vector<std::string> LabelsOf(absl::Span<const LabelledText> texts) {
  std::set<std::string> labels;
  for (const LabelledText& text : texts) labels.insert(text.label);
  return {labels.begin(), labels.end()};
}

int64_t TokenisedTexts::Tokens(int64_t item) const {
  size_t tokens = 0;
  for (const std::vector<int32_t>& document : items[item].documents) tokens += document.size();
  return static_cast<int64_t>(tokens);
}

absl::StatusOr<TokenisedTexts> TokeniseTexts(absl::Span<const LabelledText> texts, const TextClassifierConfig& config,
                                             const TextEncoder& tokenizer, absl::Span<const std::string> labels) {
  TokenisedTexts tokenised;
  for (const LabelledText& text : texts) {
    LS_ASSIGN_OR_RETURN(const int64_t target, ClassOf(labels, text.label, text.place));
    LS_ASSIGN_OR_RETURN(TokenItem item, Tokenise(text, config, tokenizer, text.place));
    tokenised.items.push_back(std::move(item));
    tokenised.targets.push_back(target);
  }
  return tokenised;
}

}  // namespace longshort::models
