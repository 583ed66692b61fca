# A script that writes a C++ file with the contents of files, for a function that is declared in a header. Files *.pb are binary,
# the others text.
#   FOLDERS   the folders with the files, separated by |; a file's name is its path in its folder
#   PATTERNS  patterns of the files' names, separated by |
#   HEADER    the header with the function's declaration
#   FUNCTION  its name
#   OUTPUT    the file to write

string(REPLACE "|" ";" _folders "${FOLDERS}")
string(REPLACE "|" ";" _patterns "${PATTERNS}")
set(_entries "")
foreach(_folder IN LISTS _folders)
  list(TRANSFORM _patterns PREPEND ${_folder}/ OUTPUT_VARIABLE _globs)
  file(GLOB_RECURSE _files RELATIVE ${_folder} ${_globs})
  foreach(_file IN LISTS _files)
    if(_file MATCHES "[.]pb$")
      file(READ ${_folder}/${_file} _content HEX)
      string(LENGTH "${_content}" _digits)
      math(EXPR _bytes "${_digits} / 2")
      string(REGEX REPLACE "(..)" "\\\\x\\1" _content "${_content}")
      string(APPEND _entries "    {\"${_file}\", {\"${_content}\", ${_bytes}}},\n")
      continue()
    endif()
    file(READ ${_folder}/${_file} _content)
    string(FIND "${_content}" ")file\"" _end)
    if(NOT _end EQUAL -1)
      message(FATAL_ERROR "${_folder}/${_file} contains the end of the literal that it is written as")
    endif()
    string(APPEND _entries "    {\"${_file}\", R\"file(${_content})file\"},\n")
  endforeach()
endforeach()
file(WRITE ${OUTPUT} "// Written by cmake/EmbedFiles.cmake.
#include \"${HEADER}\"

namespace longshort::server {

const std::map<std::string_view, std::string_view>& ${FUNCTION}() {
  static const auto* const contents = new std::map<std::string_view, std::string_view>{
${_entries}  };
  return *contents;
}

}  // namespace longshort::server
")
