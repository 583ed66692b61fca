// longshort-server: serves Transformer-LS models over gRPC. `longshort-server --help` tells how.

#include <memory>
#include <string>
#include <vector>

#include "models/language_model/language_model.h"
#include "server/lifecycle/run.h"

namespace longshort {
namespace {

ModelRegistry::Loader MakeLoader(const ServerOptions& options) {
  LanguageModelOptions model_options;
  model_options.precision = options.precision;
  model_options.threads = options.threads;
  return [model_options](const std::string& directory) { return LoadLanguageModel(directory, model_options); };
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  return longshort::RunServer(std::vector<std::string>(argv + 1, argv + argc), longshort::MakeLoader);
}
