# LONGSHORT_CUDA: whether CUDA sources are part of the build. Sets LONGSHORT_WITH_CUDA (ON, OFF) and
# LONGSHORT_CUDA_TOOLKIT (its version, or empty).
#   auto  on if nvcc exists, nvidia-smi lists a GPU, and LibTorch's GPU part finds its libraries
#   on    needs nvcc, but no GPU; for build machines
#   off   never
# With it, CUDA is a language of the project (CMake's own check compiles with nvcc), the kernels of models/ops are
# compiled for the chip, the server has workers for GPUs, and the programs' --version prints the toolkit.

file(GLOB _torch_candidates ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
find_path(LONGSHORT_TORCH_ROOT include/ATen/ATen.h
  HINTS ${_torch_candidates} NO_DEFAULT_PATH
  DOC "Folder of the torch wheel (site-packages/torch)")

if(NOT LONGSHORT_CUDA MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "LONGSHORT_CUDA is \"${LONGSHORT_CUDA}\"; it must be auto, on or off.")
endif()

# deploy/requirements-cuda.txt has nvcc, too.
file(GLOB _cuda_of_venv ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu*/bin)
find_program(LONGSHORT_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin ${_cuda_of_venv} /usr/local/cuda/bin DOC "The CUDA compiler")
find_program(LONGSHORT_NVIDIA_SMI nvidia-smi DOC "Lists the GPUs of this machine")
mark_as_advanced(LONGSHORT_NVCC LONGSHORT_NVIDIA_SMI)

set(LONGSHORT_WITH_CUDA OFF)
set(LONGSHORT_CUDA_TOOLKIT "")
if(LONGSHORT_CUDA STREQUAL "on")
  set(LONGSHORT_WITH_CUDA ON)
elseif(LONGSHORT_CUDA STREQUAL "auto" AND LONGSHORT_NVCC AND LONGSHORT_NVIDIA_SMI)
  execute_process(COMMAND ${LONGSHORT_NVIDIA_SMI} --list-gpus
    RESULT_VARIABLE _listed OUTPUT_VARIABLE _gpus ERROR_QUIET)
  if(_listed EQUAL 0 AND _gpus MATCHES "GPU 0")
    # Programs that link it do not start without these libraries.
    execute_process(COMMAND ldd ${LONGSHORT_TORCH_ROOT}/lib/libtorch_cuda.so
      RESULT_VARIABLE _read OUTPUT_VARIABLE _libraries ERROR_QUIET)
    if(_read EQUAL 0 AND NOT _libraries MATCHES "not found")
      set(LONGSHORT_WITH_CUDA ON)
    else()
      message(STATUS "CUDA: there is a GPU, but LibTorch's GPU part does not find its libraries. deploy/install installs them.")
    endif()
  endif()
endif()

if(LONGSHORT_WITH_CUDA)
  if(NOT LONGSHORT_NVCC)
    message(FATAL_ERROR "LONGSHORT_CUDA=on needs nvcc: put it on PATH, set CUDA_HOME, or configure with LONGSHORT_CUDA=off.")
  endif()
  set(CMAKE_CUDA_COMPILER ${LONGSHORT_NVCC})
  if(LONGSHORT_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${LONGSHORT_CCACHE})
  endif()
  # CMake 3.25 does not know C++20 for nvcc 13.
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # A100, and PTX for later chips; H100 and H200.
    set(CMAKE_CUDA_ARCHITECTURES 80 90a-real)
  endif()
  # One runtime in a process: LibTorch's libraries load the shared one.
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  enable_language(CUDA)
  # CMake 3.25 needs this library, which CUDA 13 no longer has.
  if(CMAKE_VERSION VERSION_LESS 3.26 AND NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  find_package(CUDAToolkit REQUIRED)
  set(LONGSHORT_CUDA_TOOLKIT ${CUDAToolkit_VERSION})
  message(STATUS "CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "CUDA: not part of this build (LONGSHORT_CUDA=${LONGSHORT_CUDA})")
endif()
