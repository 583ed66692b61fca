// Writes fields of protobuf messages as they are on the wire, without the messages: of tens of thousands of spans a
// second, to make an object for each attribute would cost more than all else that is done for them.
//
// A length stands before what it counts, so a message within a message is written to a text of its own first, or its
// length is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace longshort {

class WireWriter final {
 public:
  explicit WireWriter(std::string& bytes) : bytes_(bytes) {}

  // Fields with these numbers, below 16 or, where it is said, below 2048.
  void Text(int field, std::string_view text) {
    Tag(field, kLengthDelimited);
    Varint(text.size());
    bytes_.append(text);
  }
  void Number(int field, uint64_t number) {
    Tag(field, kVarint);
    Varint(number);
  }
  void Fixed64(int field, uint64_t number) {
    Tag(field, kFixed64);
    LittleEndian(number, sizeof(number));
  }
  // `field` may be up to 2047.
  void Fixed32(int field, uint32_t number) {
    Varint(static_cast<uint64_t>(field) << kTypeBits | kFixed32);
    LittleEndian(number, sizeof(number));
  }
  // The begin of a message of `length` bytes, which are to be written next.
  void Message(int field, size_t length) {
    Tag(field, kLengthDelimited);
    Varint(length);
  }

  // How long these are with their tags; of a message with what is in it.
  static size_t LengthOfText(size_t bytes) { return 1 + LengthOfVarint(bytes) + bytes; }
  static size_t LengthOfNumber(uint64_t number) { return 1 + LengthOfVarint(number); }
  static constexpr size_t kLengthOfFixed64 = 1 + sizeof(uint64_t);

 private:
  static constexpr int kTypeBits = 3;
  static constexpr int kVarint = 0;
  static constexpr int kFixed64 = 1;
  static constexpr int kLengthDelimited = 2;
  static constexpr int kFixed32 = 5;

  static size_t LengthOfVarint(uint64_t number) {
    size_t length = 1;
    for (; number >= 0x80; number >>= 7) ++length;
    return length;
  }

  void Tag(int field, int type) { bytes_.push_back(static_cast<char>(field << kTypeBits | type)); }
  void Varint(uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<char>(number | 0x80));
    bytes_.push_back(static_cast<char>(number));
  }
  void LittleEndian(uint64_t number, size_t length) {
    for (size_t i = 0; i < length; ++i) bytes_.push_back(static_cast<char>(number >> (8 * i)));
  }

  std::string& bytes_;
};

}  // namespace longshort
