// The pages at / and /docs: the files of server/page, which the build writes into the program.
#pragma once

#include <map>
#include <optional>
#include <string_view>

namespace longshort::server {

// Content of each file, by its name.
const std::map<std::string_view, std::string_view>& PageContents();

struct PageFile {
  std::string_view content_type;
  std::string_view content;
};

// What the browser may do with the page: load its files and call its server, nothing else.
inline constexpr char kPagePolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The file of a path: "/" is index.html, and "/docs" is docs.html. Nothing if the page has no such file.
inline std::optional<PageFile> FindPageFile(std::string_view path) {
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
