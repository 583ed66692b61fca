// The chunks of a PNG that can say how the image is to be turned.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "models/images/codecs.h"

namespace longshort::models {

// Collects the chunks of one file, in the file's order: eXIf, and the texts (tEXt, zTXt, iTXt) of ImageMagick's "Raw
// profile type exif", of XMP, and of "exif". The last one of a kind counts, as for Pillow. An iTXt that is not UTF-8 or
// cannot be decompressed does not count, except for XMP if there is no other. Chunks after the first frame of an
// animation are not part of that frame. Keeps views of the file, which must outlive this object.
class PngMetadata final {
 public:
  void Add(std::string_view type, std::string_view content);

  // Decompresses at most kMaxTextBytes of a text; a longer one counts as empty. Of a kind, looks at the last kMaxTexts.
  ImageMetadata Read() const;

  static constexpr size_t kMaxTextBytes = 1 << 20;  // as Pillow
  static constexpr size_t kMaxTexts = 16;

 private:
  struct Text {
    std::string_view content;
    bool compressed = false;
    // iTXt. Its language and translated keyword are UTF-8, too, if it is valid.
    bool international = false;
    bool has_valid_names = true;
  };
  // The last texts of one kind.
  struct Texts {
    void Add(const Text& text);
    // The last valid text.
    std::string Valid() const;
    // The last international text that can be decompressed.
    std::string International() const;

    std::deque<Text> last;
  };

  void AddText(std::string_view keyword, const Text& text);
  // Returns nullopt for what cannot be decompressed.
  static std::optional<std::string> Decompressed(const Text& text);

  std::string_view exif_;
  Texts raw_profiles_;
  Texts xmps_;
  bool pixels_began_ = false;
  bool animated_ = false;
  bool first_frame_ended_ = false;
};

}  // namespace longshort::models
