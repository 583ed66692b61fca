#include "server/fronts/open_inference/bytes_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace longshort::server::bytes_tensor_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(std::string_view raw, int64_t elements) {
  return std::string(ParseBytesTensor(raw, elements).status().message());
}

TEST(BytesTensor, WhatIsWrittenIsRead) {
  std::string raw;
  AppendBytesElement("ab", raw);
  AppendBytesElement("", raw);
  AppendBytesElement(std::string_view("\0\xFF", 2), raw);
  EXPECT_EQ(raw.substr(0, 6), std::string("\2\0\0\0ab", 6));
  EXPECT_THAT(*ParseBytesTensor(raw, 3), ElementsAre("ab", "", std::string_view("\0\xFF", 2)));
}

TEST(BytesTensor, CutOrTooLongContentsAreRejected) {
  std::string raw;
  AppendBytesElement("ab", raw);
  EXPECT_EQ(ErrorOf("", 1),
            "end within the length of element 0; their shape has 1, each of which is 4 bytes of length and its bytes");
  EXPECT_EQ(ErrorOf(raw.substr(0, 3), 1),
            "end within the length of element 0; their shape has 1, each of which is 4 bytes of length and its bytes");
  EXPECT_EQ(ErrorOf(raw.substr(0, 5), 1), "say that element 0 has 2 bytes; they have 1 more");
  EXPECT_EQ(ErrorOf(raw + "x", 1), "have 1 bytes after element 0, the last of their shape");
  EXPECT_THAT(ErrorOf(raw, 2), HasSubstr("element 1"));
  EXPECT_THAT(ErrorOf("\xFF\xFF\xFF\xFFx", 1), HasSubstr("4294967295 bytes; they have 1 more"));
}

TEST(BytesTensor, AShapeThatTheBytesCannotFillTakesNoMemory) {
  EXPECT_THAT(ErrorOf("\1\0\0\0x", INT64_MAX), HasSubstr("element 0"));
}

}  // namespace longshort::server::bytes_tensor_test
