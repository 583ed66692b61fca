#include "server/transports/http/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace longshort::server::page_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Page, RootIsTheDocument) {
  const auto file = FindPageFile("/");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->content_type, "text/html; charset=utf-8");
  EXPECT_THAT(file->content, StartsWith("<!doctype html>"));
  EXPECT_THAT(file->content, EndsWith("</html>\n"));
}

TEST(Page, FilesHaveTheirTypes) {
  EXPECT_EQ(FindPageFile("/page.css")->content_type, "text/css; charset=utf-8");
  EXPECT_EQ(FindPageFile("/page.js")->content_type, "text/javascript; charset=utf-8");
}

TEST(Page, HasNothingElse) {
  for (const char* path : {"", "page.js", "//page.js", "/page", "/page.js/", "/../http/page.h", "/CMakeLists.txt"}) {
    EXPECT_FALSE(FindPageFile(path).has_value()) << path;
  }
}

TEST(Page, LoadsOnlyItsOwnFiles) {
  constexpr std::string_view kImport = " from \"./";
  for (const auto& [name, content] : PageContents()) {
    EXPECT_THAT(content, Not(HasSubstr(" style=\""))) << name << ": kPagePolicy forbids it";
    EXPECT_THAT(content, Not(HasSubstr("src=\"http"))) << name << ": kPagePolicy forbids it";
    for (size_t at = content.find(kImport); at != content.npos; at = content.find(kImport, at + 1)) {
      const std::string_view rest = content.substr(at + kImport.size());
      EXPECT_TRUE(PageContents().contains(rest.substr(0, rest.find('"')))) << name << " imports " << rest.substr(0, 30);
    }
  }
}

}  // namespace longshort::server::page_test
