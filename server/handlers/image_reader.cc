#include "server/handlers/image_reader.h"

#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

absl::StatusOr<ClassifierItem> Prepare(const ImageInput& image, const ImagePreprocessor& preprocessor) {
  if (const auto* pixels = std::get_if<RawImage>(&image.content); pixels != nullptr)
    return preprocessor.Convert(*pixels);
  return preprocessor.Decode(std::get<std::string_view>(image.content));
}

// Decoding and resizing, roughly: what matters is how calls compare.
constexpr absl::Duration kTimePerPixel = absl::Nanoseconds(20);
// What takes no longer is done by who reads the call: another thread would need as long to wake.
constexpr absl::Duration kWakingAThread = absl::Microseconds(50);

int64_t Pixels(const ImageInput& image, const ImagePreprocessor& preprocessor) {
  const auto* raw = std::get_if<RawImage>(&image.content);
  if (raw == nullptr) return preprocessor.PixelsToDecode(std::get<std::string_view>(image.content));
  constexpr int64_t kMost = int64_t{1} << 28;  // the values fit in a message, whatever it says
  return raw->height < 1 || raw->width < 1 || raw->height > kMost / raw->width ? 0 : raw->height * raw->width;
}

}  // namespace

absl::StatusOr<ClassificationRequest> ReadImage(ImageInput image, int64_t index, const CallNames& names,
                                                std::shared_ptr<const ImagePreprocessor> preprocessor,
                                                const RequestContext& context, absl::Duration work_before) {
  if (std::holds_alternative<std::monostate>(image.content)) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.Of(CallField::kImage, index), " is unset; it must have ", names.KindsOf(CallField::kImage)));
  }
  ClassificationRequest one;
  one.context = context;
  one.bytes = image.bytes;
  one.work_until_prepared = work_before + kTimePerPixel * Pixels(image, *preprocessor);
  const bool quick = std::holds_alternative<RawImage>(image.content) &&
                     one.work_until_prepared + kTimePerPixel * preprocessor->pixels() <= kWakingAThread;
  ItemPreparation preparation = [image = std::move(image), index, &names,
                                 preprocessor = std::move(preprocessor)]() -> absl::StatusOr<ClassifierItem> {
    absl::StatusOr<ClassifierItem> item = Prepare(image, *preprocessor);
    if (item.ok()) return item;
    return absl::Status(item.status().code(),
                        absl::StrCat(names.Of(CallField::kImage, index), ": ", item.status().message()));
  };
  if (quick) {
    LS_ASSIGN_OR_RETURN(one.item, PrepareItem(preparation));
  } else {
    one.item = std::move(preparation);
  }
  return one;
}

}  // namespace longshort
