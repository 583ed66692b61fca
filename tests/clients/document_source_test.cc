#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cpp/inputs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/temporary_folder.h"

namespace longshort::client::document_source_test {

using testing::ElementsAre;
using testing::HasSubstr;

class DocumentSourceTest : public testing::Test {
 protected:
  DocumentSource Source(std::vector<std::string> names, const DocumentForm& form) {
    return DocumentSource(std::move(names), form, terminal_);
  }

  // Each as "name=first", "name=first|second" or "name!error".
  std::vector<std::string> All(DocumentSource&& source) {
    std::vector<std::string> all;
    while (const std::optional<Document> document = source.Next()) {
      std::string text = document->name;
      if (document->item.ok()) {
        absl::StrAppend(&text, "=", document->item->input().raw());
        if (document->item->has_second_input()) absl::StrAppend(&text, "|", document->item->second_input().raw());
      } else {
        absl::StrAppend(&text, "!", document->item.status().message());
      }
      all.push_back(text);
    }
    return all;
  }

  TemporaryFolder folder_;
  std::istringstream input_{"from\nstandard input"};
  std::ostringstream output_;
  std::ostringstream error_;
  Terminal terminal_{input_, output_, error_};
};

TEST_F(DocumentSourceTest, FilesAreDocumentsOfTheirVeryBytes) {
  const std::string file = folder_.Write("a.txt", "one\ntwo\n");
  DocumentSource source = Source({file, "-"}, {});
  EXPECT_THAT(All(std::move(source)), ElementsAre(file + "=one\ntwo\n", "-=from\nstandard input"));
}

TEST_F(DocumentSourceTest, TheSecondFileIsTheSecondDocumentOfThePair) {
  const std::string a = folder_.Write("a", "A");
  const std::string b = folder_.Write("b", "B");
  EXPECT_THAT(All(Source({a}, {.second = b})), ElementsAre(a + "=A|B"));
  EXPECT_THAT(All(Source({a}, {.second = folder_ / "missing"})), ElementsAre(HasSubstr("missing: No such file")));
}

TEST_F(DocumentSourceTest, AFileThatCannotBeReadIsItsOwnErrorAndTheOthersGoOn) {
  const std::string file = folder_.Write("a", "A");
  DocumentSource source = Source({folder_ / "missing", file}, {});
  EXPECT_THAT(All(std::move(source)), ElementsAre(HasSubstr("missing!"), file + "=A"));
}

// Of this one the first read fails, as of a disk that does.
TEST_F(DocumentSourceTest, AFileThatFailsWhileItIsReadIsAnErrorAndTheOthersGoOn) {
  const std::string broken = "/proc/self/mem";
  const std::string file = folder_.Write("a", "A");
  EXPECT_THAT(All(Source({broken, file}, {})),
              ElementsAre(broken + "!" + broken + ": Input/output error", file + "=A"));
  EXPECT_THAT(All(Source({broken, file}, {.lines = true})),
              ElementsAre(broken + "!" + broken + ": Input/output error", file + ":1=A"));
}

TEST_F(DocumentSourceTest, WhatHasNoEndIsAnError) {
  EXPECT_THAT(All(Source({"/dev/zero"}, {})),
              ElementsAre("/dev/zero!/dev/zero: more than 1073741824 bytes; no server accepts such a large message"));
  const std::string file = folder_.Write("a", "A");
  const std::string of_line = ": a line of more than 1073741824 bytes; no server accepts such a large message";
  EXPECT_THAT(All(Source({"/dev/zero", file}, {.lines = true})),
              ElementsAre("/dev/zero!/dev/zero" + of_line, file + ":1=A"));
  std::ifstream zeros("/dev/zero", std::ios::binary);
  Terminal terminal{zeros, output_, error_};
  DocumentSource standard_input({"-"}, {.lines = true}, terminal);
  EXPECT_THAT(All(std::move(standard_input)), ElementsAre("-!standard input" + of_line));
}

// Lines are read in blocks of 64 KiB.
TEST_F(DocumentSourceTest, LinesOfAnyLengthAreWhole) {
  std::vector<std::string> lines;
  for (const size_t length : {65'533, 65'534, 65'535, 65'536, 65'537, 131'069, 131'070, 131'071, 200'000, 0, 1}) {
    lines.push_back(std::string(length, static_cast<char>('a' + lines.size())));
  }
  for (const std::string end : {"\n", "\r\n"}) {
    for (const bool is_ended : {false, true}) {
      const std::string file = folder_.Write("long", absl::StrJoin(lines, end) + (is_ended ? end : ""));
      std::vector<std::string> expected;
      for (size_t i = 0; i < lines.size(); ++i) expected.push_back(absl::StrCat(file, ":", i + 1, "=", lines[i]));
      EXPECT_TRUE(All(Source({file}, {.lines = true})) == expected);
    }
  }
  for (const size_t length : {65'534, 65'535, 65'536}) {
    const std::string file = folder_.Write("one", std::string(length, 'x'));
    EXPECT_TRUE(All(Source({file}, {.lines = true})) == std::vector{file + ":1=" + std::string(length, 'x')});
  }
}

TEST_F(DocumentSourceTest, LinesAreDocumentsWithoutTheirEnds) {
  const std::string first = folder_.Write("first", "one\r\n\nthree\n");
  const std::string second = folder_.Write("second", "no newline at the end");
  DocumentSource source = Source({first, second}, {.lines = true});
  EXPECT_THAT(All(std::move(source)),
              ElementsAre(first + ":1=one", first + ":2=", first + ":3=three", second + ":1=no newline at the end"));
}

TEST_F(DocumentSourceTest, StandardInputHasLinesOfUnknownNumber) {
  DocumentSource source = Source({"-"}, {.lines = true});
  EXPECT_THAT(All(std::move(source)), ElementsAre("-:1=from", "-:2=standard input"));
}

TEST_F(DocumentSourceTest, LinesMayListTokenIds) {
  const std::string file = folder_.Write("ids", "7 8,9\n7 x\n");
  DocumentSource source = Source({file}, {.lines = true, .ids = true});
  EXPECT_THAT(source.Next()->item->input().ids().ids(), ElementsAre(7, 8, 9));
  EXPECT_THAT(source.Next()->item.status().message(), HasSubstr("\"x\""));
}

}  // namespace longshort::client::document_source_test
