# A script that runs after the build of a GoogleTest program: writes ctest's file, with one test for each file with tests.
#   PROGRAM      the program
#   BUILD        the folder of the build
#   ROOT         the folder that the names of tests begin below
#   ENVIRONMENT  variable=value ...
#   COST         ctest's property; empty: none
#   OUTPUT       the file to write

set(_json ${OUTPUT}.json)
execute_process(
  COMMAND ${PROGRAM} --gtest_list_tests --gtest_output=json:${_json}
  OUTPUT_QUIET RESULT_VARIABLE _status)
if(NOT _status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${_status}")
endif()
# GoogleTest writes one field per line. CMake's JSON reader would parse the whole file for each field. Brackets would join
# the lines of a list.
file(READ ${_json} _lines)
string(REGEX REPLACE "[][;]" "" _lines "${_lines}")
string(REPLACE "\\/" "/" _lines "${_lines}")
string(REPLACE "\n" ";" _lines "${_lines}")
set(_suite "")
set(_count 0)
set(_all 0)
set(_files "")
foreach(_line IN LISTS _lines)
  if(_line MATCHES "^ *\"testsuite\":")
    # Tests follow; the preceding name was the suite's.
    set(_suite ${_name})
  elseif(_line MATCHES "^ *\"name\": \"([^\"]+)\"")
    set(_name ${CMAKE_MATCH_1})
  elseif(_line MATCHES "^  \"tests\": ([0-9]+)")
    set(_all ${CMAKE_MATCH_1})
  elseif(_line MATCHES "^ *\"file\": \"([^\"]+)\"")
    # With ccache, the compiler gets names relative to the build folder.
    get_filename_component(_file ${CMAKE_MATCH_1} ABSOLUTE BASE_DIR ${BUILD})
    file(RELATIVE_PATH _file ${ROOT} ${_file})
    string(REGEX REPLACE "\\.[^.]*$" "" _file ${_file})
    list(APPEND _files ${_file})
    string(APPEND _tests_of_${_file} ":${_suite}.${_name}")
    math(EXPR _count "${_count} + 1")
  endif()
endforeach()
if(_count EQUAL 0 OR NOT _count EQUAL _all)
  message(FATAL_ERROR "${PROGRAM} lists ${_all} tests, but ${_json} contains ${_count}")
endif()

list(REMOVE_DUPLICATES _files)
set(_script "")
foreach(_file IN LISTS _files)
  string(SUBSTRING "${_tests_of_${_file}}" 1 -1 _filter)
  string(APPEND _script "add_test(\"${_file}\" \"${PROGRAM}\" \"--gtest_filter=${_filter}\")\n")
  set(_properties "")
  if(ENVIRONMENT)
    string(APPEND _properties " ENVIRONMENT \"${ENVIRONMENT}\"")
  endif()
  if(COST)
    string(APPEND _properties " COST ${COST}")
  endif()
  if(_properties)
    string(APPEND _script "set_tests_properties(\"${_file}\" PROPERTIES${_properties})\n")
  endif()
endforeach()
file(WRITE ${OUTPUT} "${_script}")
