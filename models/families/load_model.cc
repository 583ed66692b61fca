#include "models/families/load_model.h"

#include <string_view>
#include <variant>
#include <vector>

#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/families/family_loader.h"
#include "models/weights/model_directory.h"

namespace longshort::models {
namespace {

absl::StatusOr<FamilyLoader> FamilyOf(const ModelDirectory& directory) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(directory.config_text, directory.config_path()));
  const std::vector<FamilyLoader> families = FamilyLoaders();
  std::vector<std::string_view> names;
  names.reserve(families.size());
  for (const FamilyLoader& family : families) names.push_back(family.architecture);
  LS_ASSIGN_OR_RETURN(const size_t architecture, fields.Choice("architecture", names));
  return families[architecture];
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const std::string& directory, const LoadOptions& options, const LoadGuard& guard,
                                      const ImageLimits& image_limits) {
  FamilyLoader family = {};
  WeightSizes sizes;
  const auto check_room = [&](const ModelDirectory& opened) -> absl::Status {
    LS_ASSIGN_OR_RETURN(sizes, family.sizes(opened, options));
    return guard.check_room == nullptr ? absl::OkStatus() : guard.check_room(sizes);
  };
  const bool may_be_served = !guard.served_fingerprint.empty();
  const auto check = [&](const ModelDirectory& opened) -> absl::Status {
    LS_ASSIGN_OR_RETURN(family, FamilyOf(opened));
    return may_be_served ? absl::OkStatus() : check_room(opened);
  };
  LS_ASSIGN_OR_RETURN(const ModelDirectory opened, OpenModelDirectory(directory, check, guard.stop_requested));
  if (may_be_served) {
    if (opened.fingerprint == guard.served_fingerprint) {
      return absl::AlreadyExistsError(directory + " has the fingerprint that is served");
    }
    LS_RETURN_IF_ERROR(check_room(opened));
  }
  LS_ASSIGN_OR_RETURN(LoadedModel loaded, family.load(opened, options, image_limits));
  std::visit([&](auto& model) { model.sizes = sizes; }, loaded);
  return loaded;
}

}  // namespace longshort::models
