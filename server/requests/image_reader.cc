#include "server/requests/image_reader.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

int64_t BytesOf(const v1::Image& image) { return static_cast<int64_t>(image.ByteSizeLong()); }

absl::StatusOr<ClassifierItem> Convert(const v1::ImageTensor& tensor, const ImagePreprocessor& preprocessor) {
  RawImage raw;
  raw.height = tensor.height();
  raw.width = tensor.width();
  raw.channels = tensor.channels();
  if (tensor.values_case() == v1::ImageTensor::kFloatValues) {
    raw.values = absl::Span<const float>(tensor.float_values().values().data(), tensor.float_values().values_size());
  } else {
    raw.values = absl::Span<const uint8_t>(reinterpret_cast<const uint8_t*>(tensor.uint8_values().data()),
                                           tensor.uint8_values().size());
  }
  return preprocessor.Convert(raw);
}

absl::StatusOr<ClassifierItem> Prepare(const v1::Image& image, const ImagePreprocessor& preprocessor) {
  if (image.kind_case() == v1::Image::kTensor) return Convert(image.tensor(), preprocessor);
  return preprocessor.Decode(image.encoded());
}

// Decoding and resizing, roughly: what matters is how calls compare.
constexpr absl::Duration kTimePerPixel = absl::Nanoseconds(20);
// What takes no longer is done by who reads the call: another thread would need as long to wake.
constexpr absl::Duration kWakingAThread = absl::Microseconds(50);

int64_t Pixels(const v1::Image& image, const ImagePreprocessor& preprocessor) {
  if (image.kind_case() != v1::Image::kTensor) return preprocessor.PixelsToDecode(image.encoded());
  constexpr int64_t kMost = int64_t{1} << 28;  // a tensor's values fit in a message, whatever it says
  const int64_t height = image.tensor().height(), width = image.tensor().width();
  return height < 1 || width < 1 || height > kMost / width ? 0 : height * width;
}

bool HasContent(const v1::Image& image) {
  if (image.kind_case() == v1::Image::kTensor) return image.tensor().values_case() != v1::ImageTensor::VALUES_NOT_SET;
  return image.kind_case() == v1::Image::kEncoded;
}

}  // namespace

absl::StatusOr<ClassificationRequest> ReadImage(v1::Image image, int index,
                                                std::shared_ptr<const ImagePreprocessor> preprocessor,
                                                const RequestContext& context, absl::Duration work_before) {
  if (!HasContent(image)) {
    return absl::InvalidArgumentError(
        absl::StrCat("images[", index, "] is unset; it must have encoded, or a tensor with values"));
  }
  ClassificationRequest one;
  one.context = context;
  one.bytes = BytesOf(image);
  one.work_until_prepared = work_before + kTimePerPixel * Pixels(image, *preprocessor);
  const bool quick = image.kind_case() == v1::Image::kTensor &&
                     one.work_until_prepared + kTimePerPixel * preprocessor->pixels() <= kWakingAThread;
  ItemPreparation preparation = [image = std::make_shared<const v1::Image>(std::move(image)), index,
                                 preprocessor = std::move(preprocessor)]() -> absl::StatusOr<ClassifierItem> {
    absl::StatusOr<ClassifierItem> item = Prepare(*image, *preprocessor);
    if (item.ok()) return item;
    return absl::Status(item.status().code(), absl::StrCat("images[", index, "]: ", item.status().message()));
  };
  if (quick) {
    LS_ASSIGN_OR_RETURN(one.item, PrepareItem(preparation));
  } else {
    one.item = std::move(preparation);
  }
  return one;
}

}  // namespace longshort
