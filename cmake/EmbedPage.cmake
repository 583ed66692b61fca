# A script that writes a C++ file with the contents of the page's files, for server/http/page.h.
#   FOLDER  the folder with the files
#   OUTPUT  the file to write

file(GLOB _files RELATIVE ${FOLDER} ${FOLDER}/*.html ${FOLDER}/*.css ${FOLDER}/*.js)
set(_entries "")
foreach(_file IN LISTS _files)
  file(READ ${FOLDER}/${_file} _content)
  string(FIND "${_content}" ")page\"" _end)
  if(NOT _end EQUAL -1)
    message(FATAL_ERROR "${FOLDER}/${_file} contains the end of the literal that it is written as")
  endif()
  string(APPEND _entries "    {\"${_file}\", R\"page(${_content})page\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Written by cmake/EmbedPage.cmake.
#include \"server/http/page.h\"

namespace longshort::server {

const std::map<std::string_view, std::string_view>& PageContents() {
  static const auto* const contents = new std::map<std::string_view, std::string_view>{
${_entries}  };
  return *contents;
}

}  // namespace longshort::server
")
