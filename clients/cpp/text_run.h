// Runs the texts of files or lines through a model over one stream, for `longshort score`, `classify` and `embed`.
#pragma once

#include <string>
#include <vector>

#include "clients/cpp/command.h"
#include "clients/cpp/documents.h"
#include "clients/cpp/file_collection.h"
#include "clients/cpp/npy_file.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"

namespace longshort::client {

struct TextRunOptions {
  // Each line is a document: text, or a JSON object.
  bool lines = false;
  bool json_lines = false;
  // Documents are lists of token ids.
  bool ids = false;
  // Include "timings" in JSON objects.
  bool timings = false;
  // Show no progress.
  bool quiet = false;
  // Files of second documents.
  std::vector<std::string> second;
  // Gets the embeddings, if not null.
  NpyFile* npy = nullptr;

  // All but --second.
  void AddTo(OptionTable& table);
  void AddSecondTo(OptionTable& table);
  // Errors: UsageError.
  absl::Status Check() const;
  bool by_lines() const { return lines || json_lines; }
  DocumentSource::Form form() const {
    return json_lines ? DocumentSource::Form::kJsonLines
           : lines    ? DocumentSource::Form::kLines
                      : DocumentSource::Form::kFile;
  }
};

// The input of a run.
struct TextFiles {
  std::vector<std::string> names;
  // Empty, or the second document's file for each of `names`.
  std::vector<std::string> second_names;
  LeftOut left_out;
  Documents documents;
};

// The files that the arguments and --second name. `embeds`: whether vectors are asked for; models that compare two
// documents embed each by itself. Errors: UsageError, also if the number of documents does not suit the model.
absl::StatusOr<TextFiles> CollectTexts(const TextRunOptions& options, const std::vector<std::string>& arguments,
                                       const v1::Model& model, bool embeds);

// Sends the documents of all files to the model and writes the answers in their order. The output has for each document
//   of a language model    a row, followed by a line for each token if requested
//   of a classifier        a table of classes
//   with --json            an object
//   that is embedded       an object, or a row of `options.npy`: of NaN if the document fails
// `request`: the options of each document, without the model.
//
// Reports a document that cannot be read or that fails, and continues with the others. Returns kOk only if all
// documents have a result. Errors: the reason why the run ended early.
absl::StatusOr<ExitCode> RunTexts(const TextRunOptions& options, const v1::Model& model, v1::ScoreTextsOptions request,
                                  TextFiles files, const CommandContext& context);

}  // namespace longshort::client
