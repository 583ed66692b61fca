# Optional programs that make builds faster and do not change the result. deploy/install installs both.

# ccache reuses compiler results for inputs with the same content. For precompiled headers, too, it compares the content,
# not the time. Names below the checkout are relative to it, so that another checkout of the same sources shares results.
find_program(LONGSHORT_CCACHE ccache DOC "The compiler cache, used where it is there")
if(LONGSHORT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${LONGSHORT_CCACHE})
  # Makes the preprocessor's output, which ccache reads, name the precompiled header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

# GNU ld takes seconds to link a program with gRPC and LibTorch; mold takes less than one.
find_program(LONGSHORT_MOLD mold DOC "The linker, used where it is there")
if(LONGSHORT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
