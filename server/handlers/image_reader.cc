#include "server/handlers/image_reader.h"

#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

// Decoding and resizing, roughly: what matters is how calls compare.
constexpr absl::Duration kTimePerPixel = absl::Nanoseconds(20);
// What takes no longer is done by who reads the call: another thread would need as long to wake.
constexpr absl::Duration kWakingAThread = absl::Microseconds(50);

int64_t Pixels(const RawImage& raw) {
  constexpr int64_t kMost = int64_t{1} << 28;  // the values fit in a message, whatever it says
  return raw.height < 1 || raw.width < 1 || raw.height > kMost / raw.width ? 0 : raw.height * raw.width;
}

// An image, and if it is a file the header, which is read once.
struct ReadInput {
  ImageInput image;
  absl::StatusOr<ImageHeader> header;

  ReadInput(ImageInput input, const ImagePreprocessor& preprocessor) : image(std::move(input)) {
    if (!raw()) header = preprocessor.ReadHeader(std::get<std::string_view>(image.content));
  }
  bool raw() const { return std::holds_alternative<RawImage>(image.content); }

  // 0 for an image that Prepare will refuse by its header.
  int64_t pixels() const {
    if (raw()) return Pixels(std::get<RawImage>(image.content));
    return header.ok() ? header->size.pixels() : 0;
  }

  absl::StatusOr<ClassifierItem> Prepare(const ImagePreprocessor& preprocessor) const {
    if (raw()) return preprocessor.Convert(std::get<RawImage>(image.content));
    if (!header.ok()) return header.status();
    return preprocessor.Decode(std::get<std::string_view>(image.content), *header);
  }
};

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
  ReadInput input(std::move(image), *preprocessor);
  one.work_until_prepared = work_before + kTimePerPixel * input.pixels();
  const bool quick = input.raw() && one.work_until_prepared + kTimePerPixel * preprocessor->pixels() <= kWakingAThread;
  ItemPreparation preparation = [input = std::move(input), index, &names,
                                 preprocessor = std::move(preprocessor)]() -> absl::StatusOr<ClassifierItem> {
    absl::StatusOr<ClassifierItem> item = input.Prepare(*preprocessor);
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
