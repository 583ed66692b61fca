// longshort-golden-images: preprocesses the images of a golden case of form image_preprocess.
//
// Prints one JSON object a line for each image: {"case": ..., "largest_difference": ..., "largest_tensor_difference":
// ...}. The first is of the crop's pixels, in grey levels; the second of the normalised values that the models take.
// Whether that is good enough is for the caller to say: the exit code is 0 whenever the images could be preprocessed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/images/image_preprocessor.h"
#include "models/images/resize.h"
#include "models/weights/safetensors.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_tensors.h"

ABSL_FLAG(std::string, file, "", "The case's io.safetensors");
ABSL_FLAG(std::string, cases, "", "The case's config.json");

namespace longshort {
namespace {

// One entry of "cases".
struct GoldenImage {
  std::string name;
  models::ImagePreprocessingConfig config;
  models::ImageSize resized;
};

absl::StatusOr<std::vector<GoldenImage>> ReadCases(const std::string& path) {
  try {
    std::ifstream file(path);
    const nlohmann::json config = nlohmann::json::parse(file);
    std::vector<GoldenImage> images;
    for (const nlohmann::json& entry : config.at("cases")) {
      GoldenImage image;
      image.name = entry.at("case").get<std::string>();
      image.config.resize_shorter_side = entry.at("resize_short_side").get<int64_t>();
      image.config.crop_height = image.config.crop_width = entry.at("image_size").get<int64_t>();
      image.resized = {entry.at("resized_hw").at(0).get<int64_t>(), entry.at("resized_hw").at(1).get<int64_t>()};
      images.push_back(image);
    }
    if (images.empty()) return absl::InvalidArgumentError(absl::StrCat(path, " has no cases"));
    return images;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.what()));
  }
}

template <typename Value>
absl::StatusOr<double> LargestDifference(const std::vector<Value>& found, const std::vector<Value>& expected) {
  if (found.size() != expected.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d values were made, and %d are expected", found.size(), expected.size()));
  }
  double largest = 0.0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])));
  }
  return largest;
}

absl::Status RunImage(const models::SafetensorsFile& file, const GoldenImage& image) {
  LS_ASSIGN_OR_RETURN(const auto input,
                      ReadValues<uint8_t>(file, image.name + ".rgb_u8_hwc", models::DataType::kU8, 3));
  LS_ASSIGN_OR_RETURN(const auto crop,
                      ReadValues<uint8_t>(file, image.name + ".cropped_u8_hwc", models::DataType::kU8, 3));
  LS_ASSIGN_OR_RETURN(const auto tensor,
                      ReadValues<float>(file, image.name + ".tensor_chw", models::DataType::kF32, 3));
  const models::ImageSize size = {input.shape[0], input.shape[1]};
  const cv::Mat pixels = cv::Mat(input.values, /*copyData=*/true).reshape(3, static_cast<int>(size.height));

  const models::ResizeAndCrop geometry = models::CentreCrop(size, image.config);
  if (geometry.resized.height != image.resized.height || geometry.resized.width != image.resized.width) {
    return absl::InvalidArgumentError(absl::StrCat(image.name, " is resized to another size than resized_hw"));
  }
  const std::vector<uint8_t> resized = models::Resize(pixels, geometry, image.config.resize).clone().reshape(1, 1);
  LS_ASSIGN_OR_RETURN(const double in_pixels, LargestDifference(resized, crop.values));

  const auto preprocessor = models::MakeImagePreprocessor(image.config, models::ImageLimits());
  LS_ASSIGN_OR_RETURN(const models::ClassifierItem item,
                      preprocessor->Convert({size.height, size.width, 3, absl::MakeConstSpan(input.values)}));
  std::vector<float> values(std::get<models::ImageItem>(item).size());
  std::get<models::ImageItem>(item).WriteValues(values.data());
  LS_ASSIGN_OR_RETURN(const double in_tensor, LargestDifference(values, tensor.values));
  const nlohmann::json line = {
      {"case", image.name}, {"largest_difference", in_pixels}, {"largest_tensor_difference", in_tensor}};
  std::cout << line.dump() << std::endl;
  return absl::OkStatus();
}

absl::Status Run() {
  LS_ASSIGN_OR_RETURN(const std::vector<GoldenImage> images, ReadCases(absl::GetFlag(FLAGS_cases)));
  LS_ASSIGN_OR_RETURN(const models::SafetensorsFile file, models::SafetensorsFile::Open(absl::GetFlag(FLAGS_file)));
  for (const GoldenImage& image : images) LS_RETURN_IF_ERROR(RunImage(file, image));
  return absl::OkStatus();
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Preprocesses the images of a golden case: --file=io.safetensors --cases=config.json");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = longshort::Run();
  if (!status.ok()) std::cerr << "longshort-golden-images: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}
