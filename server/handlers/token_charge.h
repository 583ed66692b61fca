// What one completion costs its caller of the tokens that he may take a second: the prompt when an engine has taken it,
// the others as they come.
//
// Thread: one thread at a time.
#pragma once

#include <cstdint>

#include "server/admission/call_record.h"

namespace longshort {

class TokenCharge final {
 public:
  // `record` must outlive this.
  explicit TokenCharge(const CallRecord& record) : record_(record) {}

  void Add(int64_t generated) {
    if (generated <= 0) return;
    charged_ += generated;
    record_.ChargeTokens(generated);
  }
  // So many were generated in all: tokens behind a stop string were not told.
  void Settle(int64_t generated) { Add(generated - charged_); }

 private:
  const CallRecord& record_;
  int64_t charged_ = 0;
};

}  // namespace longshort
