# One function for each kind of target, so that a folder's CMakeLists.txt only lists what is in the room.

set(LONGSHORT_WARNINGS -Wall -Wextra -Werror)
# Of what it inlines from a precompiled header GCC 12 no longer knows that it is the standard library's, and warns of moved
# and joined strings. The sanitizers find what there is to find.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  list(APPEND LONGSHORT_WARNINGS -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# _longshort_target(name library ...): what all targets have, whatever libraries they name.
function(_longshort_target name)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${LONGSHORT_WARNINGS})
  longshort_use_precompiled(${name} ${ARGN})
endfunction()

# longshort_library(name SOURCES a.cc ... DEPENDS public_library ... PRIVATE private_library ...)
function(longshort_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  _longshort_target(${name} ${ARG_DEPENDS} ${ARG_PRIVATE})
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE})
endfunction()

# longshort_program(name SOURCES main.cc ... DEPENDS library ... [INSTALL])
function(longshort_program name)
  cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  _longshort_target(${name} ${ARG_DEPENDS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  if(ARG_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# longshort_test(name SOURCES a_test.cc ... DEPENDS library ...): a GoogleTest program, run by ctest as one test.
function(longshort_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  _longshort_target(${name} ${ARG_DEPENDS} GTest::gmock)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# longshort_benchmark(name SOURCES a_bench.cc ... DEPENDS library ...): a Google Benchmark program; ctest never runs it.
function(longshort_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  _longshort_target(${name} ${ARG_DEPENDS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} benchmark::benchmark)
endfunction()

# longshort_fuzzer(name SOURCES a_fuzz.cc ... DEPENDS library ... CORPUS folder): a libFuzzer program (preset `fuzz`). Every
# preset has it as a test that runs the inputs of the corpus once; without libFuzzer, replay_main.cc does.
function(longshort_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  _longshort_target(${name} ${ARG_DEPENDS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  set(_corpus ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  if(LONGSHORT_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND ${name} -runs=0 ${_corpus})
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${_corpus})
  endif()
endfunction()
