// Names that clients choose: of themselves, their calls, their sessions. They stand in logs and headers as they are.
#pragma once

#include <string>

namespace longshort {

inline constexpr char kNameRule[] = "1 to 128 letters, digits or any of \"._:-\"";
bool IsName(const std::string& text);

}  // namespace longshort
