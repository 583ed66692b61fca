# What makes a build fast and changes nothing that is built. deploy/install installs both programs; none is needed.

# ccache keeps what the compiler made, found again by the content of what went into it; of a precompiled header, too, the
# content counts, and not the time when it was made. Names below the checkout are taken relative to it: another checkout of
# the same sources finds everything there.
find_program(LONGSHORT_CCACHE ccache DOC "The compiler cache, used where it is there")
if(LONGSHORT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${LONGSHORT_CCACHE})
  # So that the compiler's first pass, which ccache reads, names the precompiled header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

# GNU ld takes seconds for a program with gRPC and LibTorch; mold a fraction of one.
find_program(LONGSHORT_MOLD mold DOC "The linker, used where it is there")
if(LONGSHORT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
