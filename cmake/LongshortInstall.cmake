# What `cmake --install` lays down: a tree that runs wherever it is moved to, on a Debian 12 with the packages of
# deploy/debian-packages-run.txt, or on any with their libraries (deploy/collect-libraries). `cmake --install --component` takes one part:
#   serve  bin/longshort-server, bin/longshort
#          lib/longshort/           the libraries that they need and Debian does not have: LibTorch's
#          share/doc/longshort/     LICENSE, NOTICE, CHANGELOG.md, and the licences of what is in lib/longshort
#   train  bin/longshort-train      needs `serve` beside it
#   zoo    share/longshort/models/  the demo models: longshort-server --model-repository=PREFIX/share/longshort/models
# The programs find lib/longshort from where they are (longshort_program). Included last: what is stripped is there then.

install(FILES LICENSE NOTICE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT serve)
install(DIRECTORY models/zoo/ DESTINATION ${CMAKE_INSTALL_DATADIR}/longshort/models COMPONENT zoo)

if(LONGSHORT_TORCH)
  install(RUNTIME_DEPENDENCY_SET longshort_serve
    POST_EXCLUDE_REGEXES "^/(usr/)?lib"
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/longshort COMPONENT serve)
  # What cuDNN opens by itself when a convolution is first run: no library names it.
  if(LONGSHORT_WITH_CUDA)
    file(GLOB _opened ${LONGSHORT_TORCH_ROOT}/../nvidia/cudnn/lib/libcudnn_*.so.9
      ${LONGSHORT_TORCH_ROOT}/../nvidia/cu13/lib/libnvrtc.so.13 ${LONGSHORT_TORCH_ROOT}/../nvidia/cu13/lib/libnvrtc-builtins.so.*)
    install(FILES ${_opened} DESTINATION ${CMAKE_INSTALL_LIBDIR}/longshort COMPONENT serve)
  endif()
  file(GLOB _licences ${LONGSHORT_TORCH_ROOT}/../torch-*.dist-info/licenses
    ${LONGSHORT_TORCH_ROOT}/../nvidia_*.dist-info/licenses)
  foreach(_licence ${_licences})
    cmake_path(GET _licence PARENT_PATH _package)
    cmake_path(GET _package STEM LAST_ONLY _package)
    install(DIRECTORY ${_licence}/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/${_package} COMPONENT serve)
  endforeach()
  # LibTorch comes with symbols that only debuggers read, a fifth of it. CMake itself strips nothing but this project's.
  install(CODE "
    if(CMAKE_INSTALL_DO_STRIP)
      execute_process(COMMAND \"${CMAKE_STRIP}\" 
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/longshort/libtorch_cpu.so\" COMMAND_ERROR_IS_FATAL ANY)
    endif()"
    COMPONENT serve)
endif()
