# The options of a build. The presets in CMakePresets.json set them.

set(LONGSHORT_CUDA auto CACHE STRING "Build the CUDA worker: auto (nvcc, a GPU and LibTorch's libraries for it are there), on, off")
set_property(CACHE LONGSHORT_CUDA PROPERTY STRINGS auto on off)
option(LONGSHORT_TORCH "Build what needs LibTorch and gRPC: models, server, clients" ON)
option(LONGSHORT_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(LONGSHORT_UNITY "Compile the files of a library together, which takes half the time; OFF compiles each by itself" ON)
set(LONGSHORT_SANITIZER "" CACHE STRING "Value of -fsanitize=, for example address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(LONGSHORT_SANITIZER)
  add_compile_options(-fsanitize=${LONGSHORT_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${LONGSHORT_SANITIZER})
endif()
