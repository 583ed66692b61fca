#include "models/ops/document_attention/packed_documents.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::models::packed_documents_test {

using ::testing::ElementsAre;

std::vector<std::vector<int64_t>> SegmentsOf(const PackedDocument& document) {
  std::vector<std::vector<int64_t>> segments;
  for (const WindowSegment& s : document.segments)
    segments.push_back({s.first_query, s.end_query, s.first_key, s.end_key});
  return segments;
}

PackedDocuments Pack(const std::vector<std::vector<int32_t>>& documents, const WindowRule& rule) {
  return PackDocuments(std::vector<absl::Span<const int32_t>>(documents.begin(), documents.end()), rule);
}

// w = 4: a segment sees 2 positions more on either side.
//   position  0 1 2 3 | 4 5 6 7 | 8 9
TEST(PackedDocuments, WindowsEndWithTheDocument) {
  const PackedDocuments packed = Pack({std::vector<int32_t>(10, 5)}, {.size = 4});
  EXPECT_THAT(SegmentsOf(packed.documents[0]),
              ElementsAre(ElementsAre(0, 4, 0, 6), ElementsAre(4, 8, 2, 10), ElementsAre(8, 10, 6, 10)));
  EXPECT_EQ(packed.documents[0].VisiblePairs(), 4 * 6 + 4 * 8 + 2 * 4);
}

// w = 2, one position more on either side; masked tokens keep their places and get no rows.
//   position  0 1 | 2 3 | 4 5 | 6 7
//   id        9 0 | 0 0 | 0 8 | 7 0
//   row       0             1   2
TEST(PackedDocuments, MaskedTokensHaveNoRows) {
  const PackedDocuments packed = Pack({{9, 0, 0, 0, 0, 8, 7, 0}}, {.size = 2});
  EXPECT_THAT(packed.ids, ElementsAre(9, 8, 7));
  EXPECT_THAT(packed.positions, ElementsAre(0, 5, 6));
  EXPECT_THAT(SegmentsOf(packed.documents[0]),
              ElementsAre(ElementsAre(0, 1, 0, 1), ElementsAre(1, 2, 1, 3), ElementsAre(2, 3, 1, 3)));
}

TEST(PackedDocuments, OddWindowsAndWindowsOfOne) {
  // w = 5 sees 2 more, w = 1 sees 1 more.
  EXPECT_THAT(SegmentsOf(Pack({std::vector<int32_t>(7, 1)}, {.size = 5}).documents[0]),
              ElementsAre(ElementsAre(0, 5, 0, 7), ElementsAre(5, 7, 3, 7)));
  EXPECT_THAT(SegmentsOf(Pack({{1, 1, 1}}, {.size = 1}).documents[0]),
              ElementsAre(ElementsAre(0, 1, 0, 2), ElementsAre(1, 2, 0, 3), ElementsAre(2, 3, 1, 3)));
}

TEST(PackedDocuments, WithoutAWindowATokenSeesItselfOrNothing) {
  EXPECT_THAT(SegmentsOf(Pack({{1, 0, 1}}, {.size = 0}).documents[0]),
              ElementsAre(ElementsAre(0, 1, 0, 1), ElementsAre(1, 2, 1, 2)));
  EXPECT_THAT(SegmentsOf(Pack({{1, 0, 1}}, {.size = 0, .see_nothing = true}).documents[0]),
              ElementsAre(ElementsAre(0, 2, 0, 0)));
}

TEST(PackedDocuments, DocumentsFollowEachOther) {
  const PackedDocuments packed = Pack({{3, 4}, {0, 5}, {6, 6, 6}}, {.size = 8});
  EXPECT_THAT(packed.Lengths(), ElementsAre(2, 1, 3));
  EXPECT_THAT(packed.ids, ElementsAre(3, 4, 5, 6, 6, 6));
  EXPECT_THAT(packed.positions, ElementsAre(0, 1, 1, 0, 1, 2));
  EXPECT_EQ(packed.documents[2].first_row, 3);
  EXPECT_THAT(SegmentsOf(packed.documents[2]), ElementsAre(ElementsAre(0, 3, 0, 3)));
}

// As in PackDocuments, whose rows' positions are all written.
TEST(PackedIds, HavePositionsOnlyWhereATokenIsMaskedBeforeAnother) {
  const auto pack = [](const std::vector<std::vector<int32_t>>& documents, const TokenRule& tokens = {}) {
    return PackIds(std::vector<absl::Span<const int32_t>>(documents.begin(), documents.end()), {.size = 2}, tokens);
  };
  const PackedIds counted = pack({{3, 4, 0, 0}, {5}});
  EXPECT_THAT(counted.ids, ElementsAre(3, 4, 5));
  EXPECT_THAT(counted.lengths, ElementsAre(2, 1));
  EXPECT_THAT(counted.positions, ElementsAre());
  const PackedIds skipped = pack({{3, 4}, {0, 5, 0, 6, 0}, {7}, {0, 8}});
  EXPECT_THAT(skipped.ids, ElementsAre(3, 4, 5, 6, 7, 8));
  EXPECT_THAT(skipped.positions, ElementsAre(0, 1, 1, 3, 0, 1));
  const PackedIds apart = pack({{0, 9, 3, 0, 4}, {9, 0}}, {.first_apart = true});
  EXPECT_THAT(apart.cls_ids, ElementsAre(9, 9));
  EXPECT_THAT(apart.ids, ElementsAre(3, 4));
  EXPECT_THAT(apart.lengths, ElementsAre(2, 0));
  EXPECT_THAT(apart.positions, ElementsAre());
}

TEST(PackedIds, CountThePairsThatPackedDocumentsCount) {
  const std::vector<int32_t> longer(23, 5), shorter(3, 5), masked = {5, 0, 5, 5, 0, 0, 5, 5};
  for (const WindowRule& rule :
       {WindowRule{.size = 4}, {.size = 5}, {.size = 1}, {.size = 0}, {.size = 0, .see_nothing = true}}) {
    for (const absl::Span<const int32_t> last : {absl::Span<const int32_t>(shorter), absl::MakeConstSpan(masked)}) {
      const DocumentCounts found = CountsOf(PackIds({longer, last}, rule), /*taps=*/9);
      const DocumentCounts expected = CountsOf(PackDocuments({longer, last}, rule), /*taps=*/9);
      EXPECT_EQ(found.rows, expected.rows);
      EXPECT_EQ(found.documents, 2);
      EXPECT_EQ(found.visible_pairs, expected.visible_pairs) << rule.size;
      EXPECT_EQ(found.convolved_pairs, expected.convolved_pairs);
    }
  }
}

}  // namespace longshort::models::packed_documents_test
