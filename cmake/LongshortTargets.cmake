# One function for each kind of target, so that the CMakeLists.txt of a folder only lists its content.

# Tests take longer to compile than to run, so they are hardly optimised, and in a build with sanitizers they have no
# undefined-behaviour sanitizer. Tests of models compute, so they have -O1 in a release. The tested code is compiled as in the
# rest of the build.
set(LONGSHORT_TEST_OPTIONS -O0 $<$<CONFIG:RelWithDebInfo>:-fno-sanitize=undefined>)
set(LONGSHORT_TORCH_TEST_OPTIONS ${LONGSHORT_TEST_OPTIONS} $<$<CONFIG:Release>:-O1>)
# The protocols, the clients, generated messages and what only loads models are compiled with -O1 for a short build
# (tests/build_cost measures it), and with inlining of small functions, which -O1 lacks, for short calls. The engines, the
# kernels and what each call by gRPC runs through (LONGSHORT_IN_EACH_CALL) keep -O3. With -O1, GCC 12 takes the empty functions
# of std::function for uninitialized.
set(LONGSHORT_EDGE_OPTIONS
  $<$<CONFIG:Release>:-O1> $<$<CONFIG:Release>:-finline-small-functions> $<$<CONFIG:Release>:-findirect-inlining>
  $<$<CONFIG:Release>:-fstrict-aliasing> $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
set(LONGSHORT_WARNINGS -Wall -Wextra -Werror)
# When GCC 12 inlines code from a precompiled header, it no longer knows that it is the standard library's, and warns of moved
# and joined strings. The sanitizers find real errors of this kind.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  list(APPEND LONGSHORT_WARNINGS -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# _longshort_target(name library ...): the settings of all targets.
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
  longshort_unity(${name} 0)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE})
endfunction()

# longshort_embed_files(variable FOLDERS folder ... PATTERNS pattern ... [DEPENDS generated_file ...] HEADER header FUNCTION
# function): sets the variable to a source file with the contents of the folders' files (EmbedFiles.cmake).
function(longshort_embed_files variable)
  cmake_parse_arguments(ARG "" "HEADER;FUNCTION" "FOLDERS;PATTERNS;DEPENDS" ${ARGN})
  set(_script ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake)
  set(_output ${CMAKE_CURRENT_BINARY_DIR}/${variable}.cc)
  set(_globs "")
  foreach(_folder ${ARG_FOLDERS})
    list(TRANSFORM ARG_PATTERNS PREPEND ${_folder}/ OUTPUT_VARIABLE _of_folder)
    list(APPEND _globs ${_of_folder})
  endforeach()
  file(GLOB_RECURSE _files CONFIGURE_DEPENDS ${_globs})
  string(REPLACE ";" "|" _folders "${ARG_FOLDERS}")
  string(REPLACE ";" "|" _patterns "${ARG_PATTERNS}")
  add_custom_command(
    OUTPUT ${_output}
    COMMAND ${CMAKE_COMMAND} -DFOLDERS=${_folders} -DPATTERNS=${_patterns} -DHEADER=${ARG_HEADER} -DFUNCTION=${ARG_FUNCTION}
      -DOUTPUT=${_output} -P ${_script}
    DEPENDS ${_files} ${ARG_DEPENDS} ${_script}
    VERBATIM)
  set(${variable} ${_output} PARENT_SCOPE)
endfunction()

# longshort_program(name SOURCES main.cc ... DEPENDS library ... [INSTALL component]): INSTALL names its part of the installed
# tree (LongshortInstall.cmake).
function(longshort_program name)
  cmake_parse_arguments(ARG "" "INSTALL" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  _longshort_target(${name} ${ARG_DEPENDS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  if(ARG_INSTALL)
    file(RELATIVE_PATH _libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/longshort)
    set_target_properties(${name} PROPERTIES INSTALL_RPATH $ORIGIN/${_libraries})
    # An RPATH, unlike a RUNPATH, also applies to the libraries of these libraries (deploy/collect-libraries).
    target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
    install(TARGETS ${name}
      RUNTIME_DEPENDENCY_SET longshort_${ARG_INSTALL}
      RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${ARG_INSTALL})
  endif()
endfunction()

# longshort_test(name SOURCES a_test.cc ... DEPENDS library ... [ENVIRONMENT variable=value ...] [COST number]): a GoogleTest
# program, one for each room of tests/. ctest runs it once for each of its files with tests, under the file's name, such as
# core/cache/page_pool_test. So files run in parallel, and a crash of one does not hide another's tests. The program lists its
# tests after it is built, so that none is missing. COST: ctest starts those with the highest first.
function(longshort_test name)
  cmake_parse_arguments(ARG "" "COST" "SOURCES;DEPENDS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  _longshort_target(${name} ${ARG_DEPENDS} GTest::gmock)
  # Not all files of a large room, because of the compiler's memory. Each file has its own namespace. Preset `debug` compiles
  # each file by itself.
  longshort_unity(${name} 40)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  set(_list ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/ListTests.cmake)
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}> -DBUILD=${PROJECT_BINARY_DIR} -DROOT=${PROJECT_SOURCE_DIR}/tests
      -DOUTPUT=${_list}.cmake "-DENVIRONMENT=${ARG_ENVIRONMENT}" "-DCOST=${ARG_COST}" -P ${PROJECT_SOURCE_DIR}/cmake/ListTests.cmake
    BYPRODUCTS ${_list}.cmake
    VERBATIM)
  file(WRITE ${_list}_include.cmake "\
if(EXISTS \"${_list}.cmake\")
  include(\"${_list}.cmake\")
else()
  add_test(\"${name} is not built\" ${name}_is_not_built)
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${_list}_include.cmake)
endfunction()

# longshort_benchmark(name SOURCES a_bench.cc ... DEPENDS library ...): a Google Benchmark program. ctest never runs it.
function(longshort_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  _longshort_target(${name} ${ARG_DEPENDS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} benchmark::benchmark)
endfunction()

# longshort_fuzzer(name SOURCES a_fuzz.cc ... DEPENDS library ... CORPUS folder [ROOM library FILES b.cc ...]): a libFuzzer program
# (preset `fuzz`). In every preset, a test runs the inputs of the corpus once; without libFuzzer, replay_main.cc does this. In
# preset `fuzz`, the test name_new_inputs also searches for new inputs for 10 seconds, and writes failures to build/fuzz/found.
# FILES are those of ROOM that the program tests. A preset without LibTorch and gRPC does not build ROOM, so it compiles them.
function(longshort_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS;ROOM" "SOURCES;DEPENDS;FILES" ${ARGN})
  if(TARGET "${ARG_ROOM}")
    list(APPEND ARG_DEPENDS ${ARG_ROOM})
  else()
    list(APPEND ARG_SOURCES ${ARG_FILES})
  endif()
  add_executable(${name} ${ARG_SOURCES})
  _longshort_target(${name} ${ARG_DEPENDS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  set(_corpus ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  if(NOT LONGSHORT_FUZZ)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${_corpus})
    return()
  endif()
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_test(NAME ${name} COMMAND ${name} -runs=0 ${_corpus})
  string(REGEX REPLACE "_fuzz$" "" _short ${name})
  # New inputs go to the first folder, and a crashing input below the prefix.
  set(_found ${PROJECT_BINARY_DIR}/found/${_short})
  file(MAKE_DIRECTORY ${_found})
  set(_arguments -max_total_time=10 -print_final_stats=1 -artifact_prefix=${_found}- ${_found} ${_corpus})
  set(_dictionary ${CMAKE_CURRENT_SOURCE_DIR}/${_short}.dict)
  if(EXISTS ${_dictionary})
    list(PREPEND _arguments -dict=${_dictionary})
  endif()
  add_test(NAME ${name}_new_inputs COMMAND ${name} ${_arguments})
endfunction()
