#include "server/monitoring/failure_log.h"

namespace longshort {

void FailureLog::Say(Lines& lines, const absl::Status& why, absl::Time now) {
  constexpr absl::Duration kRarely = absl::Seconds(1);
  int64_t left_out = 0;
  {
    std::lock_guard lock(mutex_);
    if (now < lines.next) {
      ++lines.left_out;
      return;
    }
    lines.next = now + kRarely;
    left_out = std::exchange(lines.left_out, 0);
  }
  LogFields fields = {
      {"model", model_}, {"code", absl::StatusCodeToString(why.code())}, {"error", std::string(why.message())}};
  if (left_out > 0) fields.emplace_back("left_out", left_out);
  log_.Error(lines.message, std::move(fields));
}

}  // namespace longshort
