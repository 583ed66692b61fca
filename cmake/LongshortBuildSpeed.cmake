# What makes a build fast and changes nothing that is built.

# ccache keeps what the compiler made, found again by the content of what went into it. A precompiled header counts by its
# content, too, and not by the time it was made.
find_program(LONGSHORT_CCACHE ccache DOC "The compiler cache, used where it is there")
if(LONGSHORT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${LONGSHORT_CCACHE})
  # So that the compiler's first pass, which ccache reads, names the precompiled header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

# GNU ld takes seconds for a program with gRPC and LibTorch; mold a fraction of one.
find_program(LONGSHORT_MOLD mold DOC "The linker, used where it is there")
if(LONGSHORT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
