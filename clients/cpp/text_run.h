// Texts of files or lines through a model, over one stream: what `longshort score` and `longshort classify` share.
#pragma once

#include <string>
#include <vector>

#include "clients/cpp/command.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"

namespace longshort::client {

struct TextRunOptions {
  // Each line is a document; as text, or as a JSON object.
  bool lines = false;
  bool json_lines = false;
  // Documents list token ids.
  bool ids = false;
  // Whether objects have "timings".
  bool timings = false;
  // No progress.
  bool quiet = false;

  void AddTo(OptionTable& table);
  // Errors: UsageError.
  absl::Status Check() const;
  bool by_lines() const { return lines || json_lines; }
};

// Sends the documents of all files to the model and shows each answer, in the documents' order. The output is
//   of a language model    a table with a row a document, behind it a line a token if there are tokens
//   of a classifier        a table of classes a document
//   with --json            an object a document
// `request`: what is asked of each document, without the model. `second_names`: empty, or the file of the second
// document for each of `names`.
//
// A document that cannot be read or is refused is shown beside its name, and the others go on. Returns kOk only if
// every document was answered with a result. Errors: what ended the run early.
absl::StatusOr<ExitCode> RunTexts(const TextRunOptions& options, const v1::Model& model, v1::ScoreTextsOptions request,
                                  std::vector<std::string> names, std::vector<std::string> second_names,
                                  const CommandContext& context);

}  // namespace longshort::client
