// longshort-identity-server: the server and its engine around models that compute next to nothing. Takes the options of
// longshort-server; a model of the repository whose name contains "image" classifies images, any other one documents.
// The version folders may be empty.

#include <filesystem>
#include <string>
#include <vector>

#include "models/families/load_model.h"
#include "server/lifecycle/run.h"
#include "tests/bench/load/identity_model.h"

namespace longshort::load {
namespace {

absl::StatusOr<models::LoadedModel> Load(const std::string& directory,
                                         const std::vector<models::WorkerDevice>& /*workers*/,
                                         const models::LoadGuard& /*guard*/) {
  const std::string model = std::filesystem::path(directory).parent_path().filename().string();
  const bool images = model.find("image") != std::string::npos;
  return MakeIdentityModel(images ? models::ClassifierInput::kImage : models::ClassifierInput::kText);
}

}  // namespace
}  // namespace longshort::load

int main(int argc, char** argv) {
  return longshort::server::RunServer({argv + 1, argv + argc},
                                      [](const longshort::server::ServerOptions&) { return longshort::load::Load; });
}
