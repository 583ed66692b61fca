// Runs the texts of files or lines through a model over one stream, for `longshort score`, `classify` and `embed`.
// Corpora are the work of longshort-batch.
#pragma once

#include <ostream>
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
  DocumentForm form;
  // Include "timings" in JSON objects.
  bool timings = false;
  // Show no progress.
  bool quiet = false;
  // Files of second documents.
  std::vector<std::string> second;
  // Cut documents to the model's maximum length.
  bool truncate = false;
  // Gets the embeddings, if not null.
  NpyFile* npy = nullptr;

  // All but --second and --truncate, which only classifiers have.
  void AddTo(OptionTable& table);
  // All, with their own title.
  void AddForClassifiersTo(OptionTable& table);
  // Errors: UsageError.
  absl::Status Check() const;
};

// The input of a run.
struct TextFiles {
  CollectedFiles first;
  // Without names, or with the second document's file for each name of `first`.
  CollectedFiles second;
  DocumentForm form;
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
// `request`: the options of each document, without the model and `truncate`.
//
// Reports a document that cannot be read or that fails, and continues with the others. Returns kOk only if all
// documents have a result. Errors: the reason why the run ended early.
absl::StatusOr<ExitCode> RunTexts(const TextRunOptions& options, const v1::Model& model, v1::ScoreTextsOptions request,
                                  TextFiles files, const CommandContext& context);

// Writes an embedding to `options.npy`, where an error is a row of NaN, or as an object to `output`.
void WriteEmbedding(const std::string& name, const v1::ScoreTextsResponse& answer, const v1::Model& model,
                    const TextRunOptions& options, std::ostream& output);

}  // namespace longshort::client
