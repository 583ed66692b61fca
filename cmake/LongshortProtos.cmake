# longshort_protos(name ROOT folder OUTPUT folder STEMS a/b ... [GRPC]): a library of the messages of ROOT/a/b.proto ..., and with
# GRPC of the services' stubs. The generated files are included by their names below OUTPUT. name_files is a target of the files alone.
function(longshort_protos name)
  cmake_parse_arguments(ARG "GRPC" "ROOT;OUTPUT" "STEMS" ${ARGN})
  list(TRANSFORM ARG_STEMS PREPEND ${ARG_ROOT}/ OUTPUT_VARIABLE _protos)
  list(TRANSFORM _protos APPEND .proto)
  set(_endings .pb.cc .pb.h)
  set(_arguments --proto_path=${ARG_ROOT} --cpp_out=${ARG_OUTPUT})
  set(_library protobuf::libprotobuf)
  if(ARG_GRPC)
    list(APPEND _endings .grpc.pb.cc .grpc.pb.h)
    list(APPEND _arguments --grpc_out=${ARG_OUTPUT} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
    list(APPEND _library gRPC::grpc++)
  endif()
  foreach(_stem ${ARG_STEMS})
    list(TRANSFORM _endings PREPEND ${ARG_OUTPUT}/${_stem} OUTPUT_VARIABLE _outputs)
    add_custom_command(
      OUTPUT ${_outputs}
      COMMAND protobuf::protoc ${_arguments} ${_stem}.proto
      DEPENDS ${_protos}
      WORKING_DIRECTORY ${ARG_ROOT}
      VERBATIM)
    list(APPEND _sources ${_outputs})
  endforeach()
  file(MAKE_DIRECTORY ${ARG_OUTPUT})
  add_library(${name} STATIC ${_sources})
  add_custom_target(${name}_files DEPENDS ${_sources})
  target_include_directories(${name} SYSTEM PUBLIC ${ARG_OUTPUT})
  target_link_libraries(${name} PUBLIC ${_library})
endfunction()
