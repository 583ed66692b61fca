// The chunks of a PNG that can say how the image is to be turned.
#pragma once

#include <string_view>

#include "models/images/codecs.h"

namespace longshort::models {

// Collects the chunks of one file, in the file's order: eXIf, and the texts (tEXt, zTXt, iTXt) of ImageMagick's "Raw
// profile type exif", of XMP, and of "exif". The last one of a kind counts. Chunks after the first frame of an
// animation are not part of that frame. Keeps views of the file, which must outlive this object.
class PngMetadata final {
 public:
  void Add(std::string_view type, std::string_view content);

  // Decompresses at most kMaxTextBytes of a text; a longer one counts as empty.
  ImageMetadata Read() const;

  static constexpr size_t kMaxTextBytes = 1 << 20;  // as Pillow

 private:
  struct Text {
    std::string_view content;
    bool compressed = false;
  };

  void AddText(std::string_view keyword, const Text& text);
  static std::string Decompressed(const Text& text);

  std::string_view exif_;
  Text raw_profile_;
  Text xmp_;
  bool pixels_began_ = false;
  bool animated_ = false;
  bool first_frame_ended_ = false;
};

}  // namespace longshort::models
