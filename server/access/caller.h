// Who makes a call, once that is known, and what he may do.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/access/access_table.h"

namespace longshort {

// Immutable. One that is default-made is anybody: on a server without authentication everybody may do everything.
class Caller final {
 public:
  Caller() = default;
  explicit Caller(std::shared_ptr<const Grant> grant) : grant_(std::move(grant)) {}

  // nullptr: nobody was asked for his name.
  Identity* identity() const { return grant_ == nullptr ? nullptr : grant_->identity.get(); }
  bool MayUseAllModels() const { return grant_ == nullptr || grant_->models.AllowAll(); }
  bool MayUse(const std::string& model) const { return grant_ == nullptr || grant_->models.Allow(model); }
  // Errors: PERMISSION_DENIED naming the scope; `what` needs it.
  absl::Status CheckScope(Scope scope, const std::string& what) const;

 private:
  std::shared_ptr<const Grant> grant_;
};

}  // namespace longshort
