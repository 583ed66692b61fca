// Files as documents.
#include <filesystem>
#include <system_error>
#include <utility>

#include "clients/cpp/document_source.h"

namespace longshort {
namespace {

class FileSource final : public DocumentSource {
 public:
  FileSource(std::vector<std::string> names, std::vector<std::string> second_names, bool as_ids, Terminal& terminal)
      : names_(std::move(names)), second_names_(std::move(second_names)), as_ids_(as_ids), terminal_(terminal) {}

  int64_t total() const override { return static_cast<int64_t>(names_.size()); }

  std::optional<NamedDocument> Next() override {
    if (next_ == names_.size()) return std::nullopt;
    const size_t place = next_++;
    return NamedDocument{names_[place], ReadInputs(place)};
  }

  std::optional<PassedDocument> Pass() override {
    if (next_ == names_.size()) return std::nullopt;
    const std::string& name = names_[next_++];
    if (name == "-") (void)ReadDocument(name, terminal_);  // it may be named once more, and is then empty
    std::error_code error;
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(name, error));
    return PassedDocument{name, error || as_ids_ ? std::nullopt : std::optional(bytes)};
  }

 private:
  absl::StatusOr<DocumentInputs> ReadInputs(size_t place) const {
    absl::StatusOr<std::string> first = ReadDocument(names_[place], terminal_);
    if (!first.ok()) return first.status();
    if (second_names_.empty()) return MakeInputs(*std::move(first), std::nullopt, as_ids_);
    absl::StatusOr<std::string> second = ReadDocument(second_names_[place], terminal_);
    if (!second.ok()) return second.status();
    return MakeInputs(*std::move(first), *std::move(second), as_ids_);
  }

  const std::vector<std::string> names_;
  const std::vector<std::string> second_names_;
  const bool as_ids_;
  Terminal& terminal_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<DocumentSource> MakeFileSource(std::vector<std::string> names, std::vector<std::string> second_names,
                                               bool as_ids, Terminal& terminal) {
  return std::make_unique<FileSource>(std::move(names), std::move(second_names), as_ids, terminal);
}

}  // namespace longshort
