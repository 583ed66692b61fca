# The tree of `cmake --install`. It can be moved, and runs on Debian 12 with the packages of
# deploy/debian-packages-run.txt, or with their libraries on other systems (deploy/collect-libraries).
# `cmake --install --component` installs one part:
#   serve  bin/longshort-server, bin/longshort
#          lib/longshort/           the libraries that they need and Debian does not have: LibTorch's
#          share/doc/longshort/     LICENSE, NOTICE, CHANGELOG.md, and the licences of the libraries in lib/longshort
#   train  bin/longshort-train      needs `serve` in the same tree
#   zoo    share/longshort/models/  the demo models: longshort-server --model-repository=PREFIX/share/longshort/models
# The programs find lib/longshort relative to their own path (longshort_program). This file is included last, when all
# files that it strips exist.

install(FILES LICENSE NOTICE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT serve)
install(DIRECTORY models/zoo/ DESTINATION ${CMAKE_INSTALL_DATADIR}/longshort/models COMPONENT zoo)

if(LONGSHORT_TORCH)
  install(RUNTIME_DEPENDENCY_SET longshort_serve
    POST_EXCLUDE_REGEXES "^/(usr/)?lib"
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/longshort COMPONENT serve)
  # cuDNN opens these libraries at the first convolution. No library is linked with them.
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
  # A fifth of LibTorch is symbols that only debuggers read. CMake strips only this project's files.
  install(CODE "
    if(CMAKE_INSTALL_DO_STRIP)
      execute_process(COMMAND \"${CMAKE_STRIP}\" 
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/longshort/libtorch_cpu.so\" COMMAND_ERROR_IS_FATAL ANY)
    endif()"
    COMPONENT serve)
endif()
