// Which rows of a document see which rows.
#pragma once

#include <cstdint>

namespace longshort::models {

// Queries that see the same rows of their document. Ends are exclusive; row 0 is the document's first.
struct WindowSegment {
  int64_t first_query = 0;
  int64_t end_query = 0;
  int64_t first_key = 0;
  int64_t end_key = 0;
};

}  // namespace longshort::models
