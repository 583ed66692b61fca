#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ostream>
#include <string>

#include "clients/cpp/terminal.h"
#include "gtest/gtest.h"

namespace longshort::client::line_output_test {

// A pipe without a reader while the test writes to it: it takes as much as fits, as a disk does.
class LineOutputTest : public testing::Test {
 protected:
  LineOutputTest() {
    EXPECT_EQ(pipe2(ends_.data(), O_NONBLOCK), 0);
    EXPECT_GT(fcntl(ends_[1], F_SETPIPE_SZ, 4096), 0);
  }
  ~LineOutputTest() override {
    for (const int end : ends_) close(end);
  }

  std::string Written() {
    std::string bytes(size_t{1} << 16, '\0');
    const ssize_t count = read(ends_[0], bytes.data(), bytes.size());
    return bytes.substr(0, count < 0 ? 0 : static_cast<size_t>(count));
  }

  std::array<int, 2> ends_ = {};
};

TEST_F(LineOutputTest, WhatIsFlushedIsWritten) {
  LineOutput output(ends_[1]);
  std::ostream stream(&output);
  stream << "one\ntw";
  EXPECT_EQ(Written(), "");
  stream << std::flush;
  EXPECT_EQ(Written(), "one\ntw");
  stream << 'o' << "\nthree\n" << std::flush;
  EXPECT_EQ(Written(), "o\nthree\n");
  EXPECT_TRUE(stream.good());
}

TEST_F(LineOutputTest, NothingIsWrittenBehindAnError) {
  LineOutput output(ends_[1]);
  std::ostream stream(&output);
  const std::string line = std::string(999, 'x') + "\n";
  for (int i = 0; i < 6 && stream; ++i) stream << line << std::flush;
  EXPECT_FALSE(stream);
  EXPECT_EQ(output.error(), EAGAIN);
  stream.clear();
  EXPECT_EQ(Written().substr(0, 4000), line + line + line + line);
  stream << "more\n" << std::flush;  // there is room, but a gap before it
  EXPECT_FALSE(stream);
  EXPECT_EQ(Written(), "");
}

TEST_F(LineOutputTest, ALongLineIsWrittenInParts) {
  LineOutput output(ends_[1]);
  std::ostream stream(&output);
  const std::string part(size_t{1} << 19, 'x');
  stream << part << part;
  EXPECT_EQ(Written(), "");
  stream << "x";  // over 1 MiB: it is not kept for the flush
  EXPECT_EQ(Written().front(), 'x');
}

}  // namespace longshort::client::line_output_test
