#include "server/options/devices.h"

namespace longshort {

absl::Status CheckDevices(const std::string& devices) {
  if (devices == "cpu" || devices == "cpu:1") return absl::OkStatus();
  return absl::InvalidArgumentError("this build serves on cpu (or cpu:1, one replica)");
}

}  // namespace longshort
