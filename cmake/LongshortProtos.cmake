# longshort_protos(name ROOT folder OUTPUT folder STEMS a/b ... [STUBS]): a library of the messages in ROOT/a/b.proto ..., and,
# with STUBS, a library name_stubs of the services' stubs, which clients need and the server does not. Generated files are
# included by their names below OUTPUT. name_files and name_stubs_files are targets that only generate the files.
function(longshort_protos name)
  cmake_parse_arguments(ARG "STUBS" "ROOT;OUTPUT" "STEMS" ${ARGN})
  file(MAKE_DIRECTORY ${ARG_OUTPUT})
  _longshort_generated(${name} .pb "--cpp_out=${ARG_OUTPUT}")
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
  if(ARG_STUBS)
    _longshort_generated(${name}_stubs .grpc.pb
      "--grpc_out=${ARG_OUTPUT};--plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>")
    target_link_libraries(${name}_stubs PUBLIC ${name} gRPC::grpc++)
  endif()
endfunction()

# Each generated file of messages defines these two statics, so a unity build renames them.
set(_rename_statics [[
#define LONGSHORT_JOIN_(a, b) a##b
#define LONGSHORT_JOIN(a, b) LONGSHORT_JOIN_(a, b)
#undef schemas
#define schemas LONGSHORT_JOIN(schemas_, LONGSHORT_FILE)
#undef file_default_instances
#define file_default_instances LONGSHORT_JOIN(file_default_instances_, LONGSHORT_FILE)]])

# A library of the files that protoc writes with these arguments for the caller's ARG_STEMS. Sets _sources.
macro(_longshort_generated name ending arguments)
  set(_sources "")
  list(TRANSFORM ARG_STEMS REPLACE "^(.+)$" "${ARG_ROOT}/\\1.proto" OUTPUT_VARIABLE _protos)
  foreach(_stem ${ARG_STEMS})
    set(_outputs ${ARG_OUTPUT}/${_stem}${ending}.cc ${ARG_OUTPUT}/${_stem}${ending}.h)
    add_custom_command(
      OUTPUT ${_outputs}
      COMMAND protobuf::protoc --proto_path=${ARG_ROOT} ${arguments} ${_stem}.proto
      DEPENDS ${_protos}
      WORKING_DIRECTORY ${ARG_ROOT}
      VERBATIM)
    list(APPEND _sources ${_outputs})
  endforeach()
  add_custom_target(${name}_files DEPENDS ${_sources})
  add_library(${name} STATIC ${_sources})
  longshort_unity(${name} 0 BEFORE "${_rename_statics}")
  target_include_directories(${name} SYSTEM PUBLIC ${ARG_OUTPUT})
  target_compile_options(${name} PRIVATE ${LONGSHORT_EDGE_OPTIONS})
  if(TARGET longshort_grpc_headers)
    target_precompile_headers(${name} REUSE_FROM longshort_grpc_headers)
  endif()
endmacro()
