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
#include "models/tokenizer/sequence_pair.h"
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

absl::StatusOr<LabelledText> ParseLine(std::string_view line, const LabelledLines& form, const std::string& place) {
  constexpr std::string_view kSecondText = "second_text";
  LS_ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::Parse(line, place));
  const TextColumns& columns = form.columns;
  if (form.only_these) {
    const std::string_view known[] = {columns.label, columns.text, kSecondText};
    LS_RETURN_IF_ERROR(fields.RefuseUnknown(absl::MakeConstSpan(known).first(form.documents + 1)));
  }
  for (const auto& [field, option] : {std::pair(columns.text, "--text-column"), {columns.label, "--label-column"}}) {
    if (form.only_these || fields.Has(field)) continue;
    return absl::InvalidArgumentError(absl::StrCat(place, ": no field '", field, "'; name the field with ", option));
  }
  LabelledText text{.label = {}, .documents = {}, .place = place};
  absl::StatusOr<std::string> label = fields.Text(columns.label);
  if (!label.ok() && !form.only_these) {
    if (const absl::StatusOr<int64_t> integer = fields.Integer(columns.label); integer.ok()) {
      label = absl::StrCat(*integer);
    }
  }
  LS_ASSIGN_OR_RETURN(text.label, std::move(label));
  LS_ASSIGN_OR_RETURN(text.documents.emplace_back(), fields.Text(columns.text));
  if (form.documents == 2) {
    LS_ASSIGN_OR_RETURN(text.documents.emplace_back(), fields.Text(kSecondText));
  }
  return text;
}

absl::StatusOr<TokenItem> Tokenise(const LabelledText& text, const TextClassifierConfig& config,
                                   const TextEncoder& tokenizer, const std::string& name) {
  const int64_t max_tokens = config.MaxDocumentTokens();
  std::vector<DocumentBeginning> documents;
  for (const std::string& document : text.documents) {
    absl::StatusOr<DocumentBeginning> ids = tokenizer.EncodeBeginning(document, max_tokens);
    if (!ids.ok()) return absl::Status(ids.status().code(), absl::StrCat(name, ": ", ids.status().message()));
    if (std::all_of(ids->ids.begin(), ids->ids.end(), [&](int32_t id) { return id == config.padding_id; })) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": a document has no tokens"));
    }
    documents.push_back(*std::move(ids));
  }
  if (config.JoinsPairs() && documents.size() == 2) {
    if (max_tokens < 4) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": a pair has at least 4 tokens, but max_document_tokens is ", max_tokens));
    }
    const auto separator = static_cast<int32_t>(config.separator_id);
    documents = {JoinPair(documents[0], documents[1], separator, max_tokens)};
  }
  TokenItem item;
  for (DocumentBeginning& document : documents) item.documents.push_back(std::move(document.ids));
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

absl::StatusOr<std::vector<LabelledText>> ParseLabelledTexts(std::string_view lines, const LabelledLines& form,
                                                             const std::string& name) {
  std::vector<LabelledText> texts;
  lines = WithoutByteOrderMark(lines);
  for (int64_t number = 1; !lines.empty(); ++number) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    LS_ASSIGN_OR_RETURN(texts.emplace_back(), ParseLine(line, form, absl::StrCat(name, ":", number)));
  }
  LS_RETURN_IF_ERROR(CheckLabelledTexts(texts, name));
  return texts;
}

absl::Status CheckLabelledTexts(absl::Span<const LabelledText> texts, const std::string& name) {
  for (const LabelledText& text : texts) {
    if (text.label.empty() || text.label.find('\n') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(text.place, ": the label must be one line that is not empty"));
    }
  }
  return texts.empty() ? absl::InvalidArgumentError(absl::StrCat(name, ": contains no labelled text"))
                       : absl::OkStatus();
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
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
