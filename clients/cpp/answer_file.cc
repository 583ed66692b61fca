#include "clients/cpp/answer_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "clients/cpp/utf8_text.h"

namespace longshort {
namespace {

// What a line tells of its document.
struct AnswerLine {
  std::string name;
  // NAME/VERSION of the model; empty in errors.
  std::string model;
  // Of the model; empty in errors, and in lines of programs that do not tell them.
  std::string fingerprint;
  std::string precision;
  // Tokens of the first text, if it was read to its end.
  std::optional<int64_t> tokens;
  std::optional<absl::Status> error;
};

// 64-bit integers are strings.
std::optional<int64_t> Number(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end()) return std::nullopt;
  int64_t number = 0;
  if (found->is_string() && absl::SimpleAtoi(found->get_ref<const std::string&>(), &number)) return number;
  return found->is_number_integer() ? std::optional(found->get<int64_t>()) : std::nullopt;
}

// The first element of the list, which has the counts of the first text.
const nlohmann::json* FirstOf(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_array() && !found->empty() && found->front().is_object() ? &found->front()
                                                                                                     : nullptr;
}

std::string Text(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Errors: INVALID_ARGUMENT if it is no line of `longshort score --json`.
absl::StatusOr<AnswerLine> ParseAnswerLine(const std::string& text) {
  constexpr JsonLimits kUnlimited = {.elements = std::numeric_limits<int64_t>::max()};
  const absl::StatusOr<nlohmann::json> object = ParseJsonObject(text, "the line", kUnlimited);
  if (!object.ok() || !object->contains("name") || !object->at("name").is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(QuoteForMessage(text), " is no answer of longshort score --json"));
  }
  AnswerLine line;
  line.name = Text(*object, "name");
  if (const auto model = object->find("model"); model != object->end() && model->is_object()) {
    line.model = absl::StrCat(Text(*model, "name"), "/", Number(*model, "version").value_or(0));
  }
  line.fingerprint = Text(*object, "fingerprint");
  line.precision = Text(*object, "precision");
  if (const auto error = object->find("error"); error != object->end() && error->is_object()) {
    line.error.emplace(static_cast<absl::StatusCode>(Number(*error, "code").value_or(0)), Text(*error, "message"));
  }
  const nlohmann::json* const score = FirstOf(*object, "scores");
  const nlohmann::json* const reading = FirstOf(*object, "documents");
  if (score != nullptr) line.tokens = Number(*score, "token_count");
  if (reading != nullptr && !reading->value("truncated", false)) line.tokens = Number(*reading, "token_count");
  return line;
}

// Errors: INVALID_ARGUMENT with the difference.
absl::Status CheckModel(const AnswerLine& line, const v1::Model& model) {
  const std::string this_model = absl::StrCat(model.name(), "/", model.version());
  if (!line.model.empty() && line.model != this_model) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is of the model ", line.model, "; this run is of ", this_model, " (--model chooses)"));
  }
  if (!line.fingerprint.empty() && line.fingerprint != model.fingerprint()) {
    return absl::InvalidArgumentError(absl::StrCat("it is of a model with the fingerprint ", line.fingerprint,
                                                   "; that of this run, ", this_model, ", has ", model.fingerprint()));
  }
  if (!line.precision.empty() && line.precision != model.precision()) {
    return absl::InvalidArgumentError(absl::StrCat("it is of a model in the precision ", line.precision,
                                                   "; that of this run, ", this_model, ", has ", model.precision()));
  }
  return absl::OkStatus();
}

// Errors: INVALID_ARGUMENT with the difference.
absl::Status CheckLine(const AnswerLine& line, const PassedDocument& document, const v1::Model& model) {
  const std::string name = ValidUtf8(document.name);
  if (line.name != name) {
    return absl::InvalidArgumentError(absl::StrCat("it is about ", QuoteForMessage(line.name),
                                                   "; in the input this document is ", QuoteForMessage(name)));
  }
  LS_RETURN_IF_ERROR(CheckModel(line, model));
  const bool a_byte_a_token = model.tokenizer() == "fairseq_bytes" || model.tokenizer() == "bytes_plus_one";
  if (a_byte_a_token && line.tokens.has_value() && document.bytes.has_value() && *line.tokens != *document.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("it is of a document of ", *line.tokens, " bytes; in the input ",
                                                   QuoteForMessage(name), " has ", *document.bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AnswerFile>> AnswerFile::Open(const std::string& path) {
  // Not with O_TRUNC, and without waiting for a pipe's reader.
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor < 0) return absl::InvalidArgumentError(absl::StrCat(path, ": ", std::strerror(errno)));
  std::unique_ptr<AnswerFile> file(new AnswerFile(path, descriptor));
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return file->Failure(errno);
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": it is no regular file"));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return absl::AbortedError(absl::StrCat(path, ": another run writes it"));
  }
  file->device_ = status.st_dev;
  file->inode_ = status.st_ino;
  return file;
}

AnswerFile::AnswerFile(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor), output_(descriptor), stream_(&output_) {}

AnswerFile::~AnswerFile() { close(descriptor_); }

bool AnswerFile::IsSameFile(const std::string& path) const {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

absl::StatusOr<std::vector<absl::Status>> AnswerFile::PassAnswered(DocumentSource& source, const v1::Model& model) {
  std::vector<absl::Status> errors;
  std::ifstream file(path_, std::ios::binary);
  std::string text;
  while (std::getline(file, text) && !file.eof()) {
    const std::string place = absl::StrCat(path_, ":", ++old_lines_, ": ");
    old_bytes_ += static_cast<int64_t>(text.size()) + 1;
    const absl::StatusOr<AnswerLine> line = ParseAnswerLine(text);
    if (!line.ok()) return absl::InvalidArgumentError(absl::StrCat(place, line.status().message()));
    const std::optional<PassedDocument> document = source.Pass();
    if (!document.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(place, "it is about ", QuoteForMessage(line->name),
                                                     "; the input has only ", old_lines_ - 1,
                                                     old_lines_ == 2 ? " document" : " documents"));
    }
    const absl::Status fits = CheckLine(*line, *document, model);
    if (!fits.ok()) return absl::InvalidArgumentError(absl::StrCat(place, fits.message()));
    if (line->error.has_value()) errors.push_back(*line->error);
  }
  if (file.bad()) return Failure(errno);
  return errors;
}

absl::StatusOr<int64_t> AnswerFile::CutPartialLine() {
  struct stat status = {};
  if (fstat(descriptor_, &status) != 0) return Failure(errno);
  const int64_t partial = status.st_size - old_bytes_;
  if (partial > 0 && ftruncate(descriptor_, old_bytes_) != 0) return Failure(errno);
  return partial;
}

absl::Status AnswerFile::Finish() {
  if (output_.error() != 0) {
    const bool cut = ftruncate(descriptor_, old_bytes_ + output_.whole_line_bytes()) == 0;
    const absl::Status failure = Failure(output_.error());
    return cut ? failure : absl::UnknownError(absl::StrCat(failure.message(), " (and its last line is not whole)"));
  }
  return fsync(descriptor_) == 0 ? absl::OkStatus() : Failure(errno);
}

absl::Status AnswerFile::Failure(int error) const {
  return absl::UnknownError(absl::StrCat(path_, ": ", std::strerror(error)));
}

}  // namespace longshort
