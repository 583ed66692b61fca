// longshort-server: serves Transformer-LS models over gRPC. `longshort-server --help` tells how.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/language_model/language_model.h"
#include "models/status_macros.h"
#include "models/weights/model_directory.h"
#include "server/lifecycle/run.h"

namespace longshort {
namespace {

ModelRegistry::Loader MakeLoader(const ServerOptions& options) {
  LanguageModelOptions model_options;
  model_options.precision = options.precision;
  model_options.threads = static_cast<int>(options.threads);
  return [model_options](const std::string& path) -> absl::StatusOr<LoadedLanguageModel> {
    LS_ASSIGN_OR_RETURN(const ModelDirectory directory, OpenModelDirectory(path));
    LoadedLanguageModel loaded;
    LS_ASSIGN_OR_RETURN(loaded.model, LoadLanguageModel(directory, model_options));
    LS_ASSIGN_OR_RETURN(loaded.tokenizer, LoadTokenizer(directory));
    return loaded;
  };
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  return longshort::RunServer(std::vector<std::string>(argv + 1, argv + argc), longshort::MakeLoader);
}
