# Precompiled headers. The libraries' headers take most of a file's compile time (tests/build_cost prints that of LibTorch's). Files
# still include all headers that they use. Only a build with LONGSHORT_UNITY off and CMAKE_DISABLE_PRECOMPILE_HEADERS on checks
# this.

# GCC uses a precompiled header only with the flags of its compilation, and some libraries require this flag. It takes one
# with another of -O1 to -O3, but then it may crash (ipa-cp).
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-pthread>)

set(_common_headers
  <algorithm> <array> <chrono> <cstdint> <functional> <map> <memory> <mutex> <optional> <string> <thread> <utility> <variant>
  <vector>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/time/clock.h> <absl/types/span.h>)
set(_common_libraries absl::statusor absl::strings absl::str_format absl::time absl::span)

# A library of only the common headers and the given ones, compiled once.
# _longshort_precompiled(name HEADERS header ... DEPENDS library ... OPTIONS compiler_option ...)
function(_longshort_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS;OPTIONS" ${ARGN})
  set(_source ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${_source} CONTENT "")
  add_library(${name} OBJECT ${_source})
  target_compile_options(${name} PRIVATE ${LONGSHORT_WARNINGS} ${ARG_OPTIONS})
  target_link_libraries(${name} PRIVATE ${_common_libraries} ${ARG_DEPENDS})
  target_precompile_headers(${name} PRIVATE ${_common_headers} ${ARG_HEADERS})
endfunction()

set(_torch_headers <ATen/Functions.h> <ATen/TensorOperators.h>)
set(_grpc_headers
  <grpcpp/grpcpp.h> <google/protobuf/map.h> <google/protobuf/generated_message_reflection.h> <nlohmann/json.hpp>)
set(_test_headers <gmock/gmock.h> <gtest/gtest.h>)
_longshort_precompiled(longshort_headers)
_longshort_precompiled(longshort_test_headers HEADERS ${_test_headers} DEPENDS GTest::gmock OPTIONS ${LONGSHORT_TEST_OPTIONS})
if(LONGSHORT_TORCH)
  # Without OpenMP, at::parallel_for is silently a sequential loop. Clang builds are sequential, because clang's OpenMP runtime
  # is not the one that LibTorch links.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(LONGSHORT_OPENMP $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
  endif()
  _longshort_precompiled(longshort_torch_headers
    HEADERS ${_torch_headers} DEPENDS longshort::torch OPTIONS ${LONGSHORT_OPENMP})
  _longshort_precompiled(longshort_torch_test_headers
    HEADERS ${_torch_headers} ${_test_headers}
    DEPENDS longshort::torch GTest::gmock
    OPTIONS ${LONGSHORT_TORCH_TEST_OPTIONS} ${LONGSHORT_OPENMP})
  _longshort_precompiled(longshort_grpc_headers
    HEADERS ${_grpc_headers} DEPENDS gRPC::grpc++ OPTIONS ${LONGSHORT_EDGE_OPTIONS})
  # Only in a release are calls compiled with other options than the rest.
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    _longshort_precompiled(longshort_grpc_call_headers HEADERS ${_grpc_headers} DEPENDS gRPC::grpc++)
  endif()
  _longshort_precompiled(longshort_grpc_test_headers
    HEADERS ${_grpc_headers} ${_test_headers}
    DEPENDS gRPC::grpc++ GTest::gmock
    OPTIONS ${LONGSHORT_TEST_OPTIONS})
endif()

# longshort_use_precompiled(name library ...): uses the headers that suit a target of these libraries; for tests, adds the options
# that these headers were compiled with.
function(longshort_use_precompiled name)
  set(_set longshort)
  set(_test_options ${LONGSHORT_TEST_OPTIONS})
  if("longshort::torch" IN_LIST ARGN)
    string(APPEND _set _torch)
    set(_test_options ${LONGSHORT_TORCH_TEST_OPTIONS})
    target_compile_options(${name} PRIVATE ${LONGSHORT_OPENMP})
  elseif(TARGET longshort_grpc_headers AND
    (LONGSHORT_AT_THE_EDGE OR ARGN MATCHES "gRPC::grpc|longshort_proto|longshort_server|longshort_clients"))
    string(APPEND _set _grpc)
    if(LONGSHORT_IN_EACH_CALL AND TARGET longshort_grpc_call_headers)
      string(APPEND _set _call)
    else()
      target_compile_options(${name} PRIVATE ${LONGSHORT_EDGE_OPTIONS})
    endif()
  endif()
  if("GTest::gmock" IN_LIST ARGN)
    string(APPEND _set _test)
    target_compile_options(${name} PRIVATE ${_test_options})
  endif()
  target_precompile_headers(${name} REUSE_FROM ${_set}_headers)
endfunction()
