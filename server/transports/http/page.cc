#include "server/transports/http/page.h"

namespace longshort::server {

std::optional<PageFile> FindPageFile(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  path.remove_prefix(1);
  const auto found = PageContents().find(path.empty() ? "index.html" : path == "docs" ? "docs.html" : path);
  if (found == PageContents().end()) return std::nullopt;
  const std::string_view name = found->first;
  const std::string_view type = name.ends_with(".html")  ? "text/html; charset=utf-8"
                                : name.ends_with(".css") ? "text/css; charset=utf-8"
                                                         : "text/javascript; charset=utf-8";
  return PageFile{.content_type = type, .content = found->second};
}

}  // namespace longshort::server
